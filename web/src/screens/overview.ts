import { type Child, Pane, arrange, el } from "../dom";
import type { Cluster } from "../payload";
import { Gallery } from "../gallery";
import { type Report, imagesWhere } from "../report";
import type { Screen } from "../shell";
import { JUNK } from "../review/replay";
import { cohesion } from "../review/texts";
import { StartHere } from "../start";
import { suggestionChart } from "../suggestion";
import { swatch } from "../swatch";
import { picture } from "../thumb";
import { count, fixed, images, percent, displayName } from "../format";

const CLUSTERS = "Clusters"; // as `report/settings_text.py` calls the fact
type Order = [label: string, compare: (a: Cluster, b: Cluster) => number];

const ORDERS: Record<string, Order> = {
  number: ["number", (a, b) => a.id - b.id],
  largest: ["largest first", (a, b) => b.size - a.size],
  smallest: ["smallest first", (a, b) => a.size - b.size],
  tightest: ["tightest first", (a, b) => b.tightness - a.tightness],
  loosest: ["loosest first", (a, b) => a.tightness - b.tightness],
};

/** Every cluster as a card, the run's settings and scores. */
export function overviewScreen(report: Report): Screen {
  const cards = el("ul", { class: "cards" });
  const made = new Map<number, Pane>();
  const files = new Pane(el("div"));
  const facts = new Pane(el("dl", { class: "facts" }));
  const start = new StartHere(report);
  let list: Gallery | null = null;
  const found = el("p", { class: "quiet", role: "status" });
  const search = el("input", { type: "search", id: "search", placeholder: "name, number, label or file", autocomplete: "off" });
  const order = el(
    "select",
    { id: "order" },
    Object.entries(ORDERS).map(([key, [words]]) => el("option", { value: key }, words)),
  );

  function update(): boolean {
    const wanted = search.value.trim().toLowerCase();
    const named = imagesNamed(report, wanted);
    const shown = matching(report, wanted, named).sort((ORDERS[order.value] as Order)[1]);
    shown.sort((a, b) => Number(a.id === JUNK) - Number(b.id === JUNK)); // junk stands last
    arrange(cards, shown.map(cardOf));
    files.show(named, () => {
      if (named.length === 0) return [];
      const title = `${images(named.length)} by name`;
      list = new Gallery(report, named, title);
      return [el("section", { class: "named" }, el("h2", {}, title), list.element)];
    });
    list?.show();
    found.textContent = wanted === "" ? "" : foundText(report, shown.length, named.length);
    start.show();
    const described = settings(report);
    facts.show(described, () => described.flatMap(([name, words]) => [el("dt", {}, name), el("dd", {}, words)]));
    return true;
  }

  function cardOf(cluster: Cluster): HTMLElement {
    const { id } = cluster;
    const pane = made.get(id) ?? newCard(id);
    made.set(id, pane);
    const seen = report.review.seenByCluster.get(id) ?? 0;
    pane.show([cluster, seen, report.review.proposedNames.get(id)?.id ?? null], () => card(report, cluster, seen));
    return pane.element;
  }

  search.addEventListener("input", update);
  order.addEventListener("change", update);
  update();
  const content = el(
    "div",
    { class: "screen" },
    el("h1", {}, "Clusters found"),
    scoreLine(report),
    notes(report),
    start.element,
    el(
      "div",
      { class: "tools" },
      el("label", { for: "search" }, "Search ", search),
      el("label", { for: "order" }, "Sort ", order),
      found,
    ),
    files.element,
    cards,
    report.suggestion === null ? null : suggestionChart(report.suggestion),
    el("section", { class: "settings", "aria-labelledby": "settings" }, el("h2", { id: "settings" }, "Settings of the run"), facts.element),
  );
  return { title: () => "Overview", content, corrected: update };
}

/** The images with these letters in their names; a single one would be in too many. */
function imagesNamed(report: Report, wanted: string): number[] {
  if (wanted.length < 2) return [];
  return imagesWhere(report, (image) => report.nameOf(image).toLowerCase().includes(wanted));
}

function matching(report: Report, wanted: string, named: number[]): Cluster[] {
  const holding = new Set(named.map((image) => report.cluster[image]));
  return report.clusters.filter(
    (cluster) =>
      report.clusterName(cluster.id).toLowerCase().includes(wanted) ||
      (cluster.label ?? "").toLowerCase().includes(wanted) ||
      holding.has(cluster.id),
  );
}

function foundText(report: Report, clusters: number, named: number): string {
  if (clusters === 0 && named === 0) return "No matches.";
  return `${count(clusters)} of ${count(report.clusters.length)} clusters`;
}

function newCard(id: number): Pane {
  const link = el("a", { class: "card", href: `#/cluster/${id}` });
  return new Pane(el("li", { "data-cluster": id }, link), link);
}

function card(report: Report, cluster: Cluster, seen: number): Child[] {
  const { label, share } = cluster;
  return [
    el("div", { class: "mosaic" }, cluster.typical.slice(0, 9).map((image) => picture(report, image))),
    el("h2", {}, swatch(cluster.id), report.clusterName(cluster.id), proposed(report, cluster.id)),
    el("p", { class: "quiet pair" }, el("span", {}, images(cluster.size)), cluster.id !== JUNK && tightness(cluster)),
    label !== null && share !== null && el("p", { class: "quiet" }, `${percent(share)} labelled “${label}”`),
    cluster.id !== JUNK && seen > 0 && progress(seen, cluster.size),
  ];
}

/** The name that is proposed for a cluster, unlike those that people gave. */
function proposed(report: Report, id: number): HTMLElement | null {
  const name = report.review.proposedNames.get(id);
  return name === undefined ? null : el("span", { class: "proposed", title: `Proposed: ${name.evidence}` }, `${name.name}?`);
}

/** A cluster's compactness, in a word. */
function tightness(cluster: Cluster): HTMLElement {
  const { word, meaning } = cohesion(cluster);
  return el("span", { class: word === "tight" ? null : "loose", title: `Tightness ${fixed(cluster.tightness, 2)} (1 is all alike). ${meaning}` }, word);
}

/** The reviewed share of a cluster. */
function progress(seen: number, size: number): HTMLElement {
  const done = el("span");
  done.style.width = `${(100 * seen) / size}%`;
  return el("span", { class: "meter", role: "img", "aria-label": `${count(seen)} of ${count(size)} reviewed` }, done);
}

function scoreLine(report: Report): HTMLElement | null {
  if (report.labels === null) return null;
  const { accuracy, nmi, ari, ami } = report.labels.scores;
  const shown = Object.entries({ accuracy, nmi, ari, ami });
  return el(
    "dl",
    { class: "scores", "aria-label": "Agreement with the labels" },
    shown.map(([key, value]) => el("div", {}, el("dt", {}, displayName(key)), el("dd", {}, fixed(value)))),
  );
}

function notes(report: Report): HTMLElement | null {
  const lines = [
    ...(report.note === null ? [] : [report.note]),
    ...report.warnings.map(([epoch, words]) => (epoch === 0 ? words : `epoch ${epoch}: ${words}`)).map(sentence),
  ];
  if (lines.length === 0) return null;
  return el("ul", { class: "notes", "aria-label": "Warnings" }, lines.map((line) => el("li", {}, line)));
}

/** Words that begin with a capital letter. */
function sentence(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The run's settings, with the current number of clusters. */
function settings(report: Report): [name: string, words: string][] {
  const clusters = (ids: Iterable<number>): number => [...ids].filter((id) => id !== JUNK).length;
  const [was, now] = [clusters(report.firstNearest.keys()), clusters(report.byId.keys())];
  return report.settings.map(([name, words]) => [name, name === CLUSTERS && now !== was ? `${count(now)}, corrected by hand` : words]);
}
