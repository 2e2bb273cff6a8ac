import { type Child, Pane, el } from "../dom";
import { Gallery } from "../gallery";
import type { Cluster } from "../payload";
import { type Report, imagesWhere } from "../report";
import type { Actions } from "../review/actions";
import type { ProposedName } from "../review/proposals";
import { JUNK } from "../review/replay";
import { cohesion, reviewedText } from "../review/texts";
import type { Screen } from "../shell";
import { sizeSlider } from "../size";
import { swatch } from "../swatch";
import { picture } from "../thumb";
import { count, fixed, images, percent } from "../format";

const ASIDE = "These images belong to no cluster and are not scored. Choose some and move them to bring them back.";

/** One cluster: typical, borderline and outlying images, and the nearest clusters. */
export function clusterScreen(report: Report, id: number, actions: Actions): Screen {
  if (report.clusterOf(id) === undefined) {
    const words = "Unknown cluster";
    return { title: () => words, content: el("div", { class: "screen" }, el("h1", {}, words), el("a", { href: "#/overview" }, "All clusters")) };
  }
  const steps = new Pane(el("nav", { class: "steps", "aria-label": "Clusters" }));
  const heading = new Pane(el("h1"));
  const name = new Pane(el("div"));
  const description = el("p", { class: "description" });
  const lead = el("p", { class: "lead" });
  const typical = new Gallery(report, [], "Typical");
  const borderline = new Gallery(report, [], "Borderline");
  const odd = new Gallery(report, [], "Odd");
  const alike = new Pane(el("section"));
  const all = new Gallery(report, [], "All images");
  const howMany = el("p", { class: "quiet" });
  const samples = [
    section("Typical", "Nearest to the centre.", typical),
    section("Borderline", "Almost as near to another cluster.", borderline),
    section("Odd", "Farthest from the centre.", odd),
  ];
  const content = el(
    "div",
    { class: "screen", "data-cluster": id },
    steps.element,
    heading.element,
    name.element,
    description,
    lead,
    id === JUNK ? el("p", { class: "quiet" }, ASIDE) : tools(actions, id),
    el("div", { class: "tools" }, sizeSlider(report.size)),
    samples,
    alike.element,
    section("All images", howMany, all),
  );

  function corrected(): boolean {
    const cluster = report.clusterOf(id);
    if (cluster === undefined) return false;
    const around = adjacent(report, cluster);
    steps.show(around.map((each) => each && [each.id, each.name]), () => neighbours(report, around));
    heading.show(cluster.name, () => title(report, cluster));
    const proposed = report.review.proposedNames.get(id);
    name.show(proposed?.id ?? null, () => (proposed === undefined ? [] : [proposedName(actions, id, proposed)]));
    description.hidden = !report.descriptions.has(id);
    description.textContent = report.descriptions.get(id) ?? "";
    lead.textContent = sentence(report, cluster);
    const members = imagesWhere(report, (image) => report.cluster[image] === id, report.nearestFirst());
    const few = cluster.typical.length >= members.length; // all samples would show the same images
    typical.show(few ? [] : cluster.typical);
    borderline.show(few ? [] : cluster.borderline);
    odd.show(few ? [] : cluster.odd);
    for (const part of samples) part.hidden = few;
    const there = cluster.nearest.flatMap(([other, likeness]) => {
      const known = report.clusterOf(other);
      return known === undefined ? [] : [{ id: other, name: known.name, likeness, typical: known.typical.slice(0, 4) }];
    });
    alike.element.hidden = there.length === 0;
    alike.show(there, () => nearest(report, there));
    howMany.textContent = `${count(members.length)}, from the centre outwards.`;
    all.show(members);
    return true;
  }

  corrected();
  return { title: () => report.clusterName(id), content, corrected };
}

function title(report: Report, { id, name }: Cluster): Child[] {
  return [swatch(id), report.clusterName(id), name !== null && id !== JUNK && el("span", { class: "quiet number-of" }, id)];
}

/** The name that is proposed, with its evidence; accepting it is one click or key. */
function proposedName(actions: Actions, id: number, { name, evidence }: ProposedName): HTMLElement {
  return el(
    "div",
    { class: "proposal", role: "group", "aria-label": "Proposed name" },
    el("p", {}, "Proposed name: ", el("strong", {}, name), el("span", { class: "quiet" }, ` ${evidence}.`)),
    el(
      "div",
      { class: "tools" },
      el("button", { type: "button", class: "main", title: "Accept (A)", click: () => actions.acceptName(id) }, `Name it “${name}”`),
      el("button", { type: "button", click: () => actions.dismissName(id) }, "Dismiss"),
    ),
  );
}

function tools(actions: Actions, id: number): HTMLElement {
  const deeds: [words: string, key: string, deed: () => void][] = [
    ["Rename", "R", () => actions.rename(id)],
    ["Describe", "D", () => actions.describe(id)],
    ["Merge into …", "G", () => actions.merge(id)],
    ["Confirm all", "Shift + C", () => actions.confirmCluster(id)],
    ["All junk", "Shift + J", () => actions.junkCluster(id)],
  ];
  const buttons = deeds.map(([words, key, click]) => el("button", { type: "button", title: `${words} (${key})`, click }, words));
  return el("div", { class: "tools", role: "group", "aria-label": "With this cluster" }, buttons);
}

function sentence(report: Report, cluster: Cluster): string {
  const { id, size, tightness, label, share } = cluster;
  if (id === JUNK) return `${images(size)} marked as junk.`;
  const seen = report.review.seenByCluster.get(id) ?? 0;
  const labelled = label !== null && share !== null ? `; ${percent(share)} are labelled “${label}”` : "";
  const { word, meaning } = cohesion(cluster);
  return `${images(size)}, ${word} (tightness ${fixed(tightness, 2)}; 1 is all alike)${labelled}. ${meaning} ${reviewedText(seen, size)}.`;
}

function section(title: string, words: string | HTMLElement, shown: Gallery): HTMLElement {
  const said = typeof words === "string" ? el("p", { class: "quiet" }, words) : words;
  return el("section", {}, el("h2", {}, title), said, shown.element);
}

/** The clusters before and after one in the list. */
function adjacent(report: Report, cluster: Cluster): [before: Cluster | null, after: Cluster | null] {
  const place = report.clusters.indexOf(cluster);
  return [report.clusters[place - 1] ?? null, report.clusters[place + 1] ?? null];
}

function neighbours(report: Report, [before, after]: [Cluster | null, Cluster | null]): Child[] {
  const link = (to: Cluster | null, words: (name: string) => string): HTMLElement | null =>
    to === null ? null : el("a", { href: `#/cluster/${to.id}` }, words(report.clusterName(to.id)));
  return [
    link(before, (name) => `← ${name}`),
    el("a", { href: "#/overview" }, "All clusters"),
    link(after, (name) => `${name} →`),
  ];
}

interface Alike {
  id: number;
  likeness: number;
  typical: number[];
}

function nearest(report: Report, there: Alike[]): Child[] {
  const entries = there.map(({ id, likeness, typical }) =>
    el(
      "li",
      {},
      el(
        "a",
        { class: "card small", href: `#/cluster/${id}` },
        el("div", { class: "mosaic strip" }, typical.map((image) => picture(report, image))),
        el("h3", {}, swatch(id), report.clusterName(id)),
        el("p", { class: "quiet" }, `cosine ${fixed(likeness, 2)}`),
      ),
    ),
  );
  return [
    el("h2", {}, "Nearest clusters"),
    el("p", { class: "quiet" }, "By the cosine of the prototypes: the nearer to 1, the more similar."),
    el("ul", { class: "cards" }, entries),
  ];
}
