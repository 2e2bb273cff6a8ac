import { el } from "../dom";
import { gallery } from "../gallery";
import type { Cluster } from "../payload";
import { type Report, imagesWhere } from "../report";
import type { Actions } from "../review/actions";
import { JUNK } from "../review/replay";
import { lookedAt, seenWords } from "../review/words";
import type { Screen } from "../shell";
import { swatch } from "../swatch";
import { picture } from "../thumb";
import { count, fixed, images, percent } from "../words";

const ASIDE = "These images belong to no cluster and take no part in scores. Choose some and move them to bring them back.";

/** One cluster: its middle, its edges, its odd ones out, and its neighbours. */
export function clusterScreen(report: Report, id: number, actions: Actions): Screen {
  const cluster = report.clusterOf(id);
  if (cluster === undefined) {
    const title = "No such cluster";
    return { title, content: el("div", { class: "screen" }, el("h1", {}, title), el("a", { href: "#/overview" }, "All clusters")) };
  }
  const name = report.clusterName(id);
  const members = imagesWhere(report, (image) => report.cluster[image] === id);
  members.sort((a, b) => (report.distance[a] ?? 0) - (report.distance[b] ?? 0));
  const content = el(
    "div",
    { class: "screen", "data-cluster": id },
    neighbours(report, cluster),
    el("h1", {}, swatch(id), name, cluster.name !== null && id !== JUNK && el("span", { class: "quiet number-of" }, id)),
    report.descriptions.has(id) && el("p", { class: "description" }, report.descriptions.get(id) as string),
    el("p", { class: "lead" }, sentence(report, cluster)),
    id === JUNK ? el("p", { class: "quiet" }, ASIDE) : tools(actions, id),
    section(report, "Typical", "Nearest to the middle.", cluster.typical),
    section(report, "Borderline", "Almost as near to another cluster.", cluster.borderline),
    section(report, "Odd", "Farthest from the middle.", cluster.odd),
    nearest(report, cluster),
    section(report, "All images", `${count(members.length)}, from the middle outwards.`, members),
  );
  return { title: name, content };
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

function sentence(report: Report, { id, size, tightness, label, share }: Cluster): string {
  if (id === JUNK) return `${images(size)} set aside.`;
  const { seen } = lookedAt(report, id);
  const labelled = label !== null && share !== null ? `; ${percent(share)} are labelled “${label}”` : "";
  return `${images(size)}, tightness ${fixed(tightness, 2)} (1 is all alike)${labelled}. ${seenWords(seen, size)}.`;
}

function section(report: Report, title: string, words: string, shown: number[]): HTMLElement {
  return el("section", {}, el("h2", {}, title), el("p", { class: "quiet" }, words), gallery(report, shown, title));
}

function neighbours(report: Report, cluster: Cluster): HTMLElement {
  const place = report.clusters.indexOf(cluster);
  const link = (to: Cluster | undefined, words: (name: string) => string): HTMLElement | null =>
    to === undefined ? null : el("a", { href: `#/cluster/${to.id}` }, words(report.clusterName(to.id)));
  return el(
    "nav",
    { class: "steps", "aria-label": "Clusters" },
    link(report.clusters[place - 1], (name) => `← ${name}`),
    el("a", { href: "#/overview" }, "All clusters"),
    link(report.clusters[place + 1], (name) => `${name} →`),
  );
}

function nearest(report: Report, cluster: Cluster): HTMLElement | null {
  const there = cluster.nearest.filter(([other]) => report.clusterOf(other) !== undefined);
  if (there.length === 0) return null;
  const entries = there.map(([other, likeness]) => {
    const typical = (report.clusterOf(other)?.typical ?? []).slice(0, 4);
    return el(
      "li",
      {},
      el(
        "a",
        { class: "card small", href: `#/cluster/${other}` },
        el("div", { class: "mosaic strip" }, typical.map((image) => picture(report, image))),
        el("h3", {}, swatch(other), report.clusterName(other)),
        el("p", { class: "quiet" }, `cosine ${fixed(likeness, 2)}`),
      ),
    );
  });
  return el(
    "section",
    {},
    el("h2", {}, "Nearest clusters"),
    el("p", { class: "quiet" }, "By the cosine of the prototypes: the nearer to 1, the likelier they are one."),
    el("ul", { class: "cards" }, entries),
  );
}
