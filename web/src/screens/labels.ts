import { el } from "../dom";
import { gallery } from "../gallery";
import { type Labels, type Report, clusterName, imagesWhere } from "../report";
import type { Screen } from "../shell";
import { count, fixed, images, spoken } from "../words";

const MEANINGS: Record<string, string> = {
  accuracy: "share right under the best one-to-one matching",
  nmi: "shared information, normalised",
  ari: "pairs of images, adjusted for chance",
  ami: "shared information, adjusted for chance",
};

const WORDS = "Rows are labels, columns clusters; matches lie on the diagonal. Choose a cell to see its images.";

/** How clusters and labels agree; a cell of the matrix opens its images. */
export function labelsScreen(report: Report, row: number | null, column: number | null): Screen {
  const { labels } = report;
  const title = "Against the labels";
  if (labels === null) return { title, content: el("div", { class: "screen" }, el("h1", {}, "This run has no labels")) };
  const cell = row === null || column === null ? null : opened(report, labels, row, column);
  const content = el(
    "div",
    { class: "screen" },
    el("h1", {}, title),
    scores(labels),
    el("h2", {}, "Who is where"),
    el("p", { class: "quiet" }, WORDS),
    matrix(labels, row, column),
    cell,
  );
  return { title, content, shown: () => cell?.querySelector("h2")?.scrollIntoView({ block: "center" }) };
}

function scores({ scores }: Labels): HTMLElement {
  const { accuracy, nmi, ari, ami } = scores;
  return el(
    "dl",
    { class: "scores" },
    Object.entries({ accuracy, nmi, ari, ami }).map(([key, value]) =>
      el("div", {}, el("dt", {}, spoken(key)), el("dd", {}, fixed(value)), el("dd", { class: "quiet" }, MEANINGS[key] ?? "")),
    ),
  );
}

function matrix(labels: Labels, row: number | null, column: number | null): HTMLElement {
  const table = el(
    "table",
    { class: "matrix" },
    el("caption", { class: "unseen" }, "Images by label and cluster"),
    el(
      "thead",
      {},
      el("tr", {}, el("td", { class: "corner" }, "label ↓ cluster →"), labels.columns.map(columnHead)),
    ),
    el("tbody", {}, labels.rows.map((label, place) => matrixRow(labels, label, place, row, column))),
  );
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Confusion matrix" }, table);
}

function columnHead(cluster: number): HTMLElement {
  return el("th", { scope: "col" }, el("a", { href: `#/cluster/${cluster}`, title: clusterName(cluster) }, cluster));
}

function matrixRow(labels: Labels, label: number, place: number, row: number | null, column: number | null): HTMLElement {
  const name = labels.names[label] ?? "";
  const counts = labels.counts[place] ?? [];
  const total = counts.reduce((sum, each) => sum + each, 0);
  const cells = labels.columns.map((cluster, at) => {
    const found = counts[at] ?? 0;
    if (found === 0) return el("td", {}, el("span", { class: "zero" }, "·"));
    const share = total === 0 ? 0 : found / total;
    const chosen = row === label && column === cluster;
    const link = el(
      "a",
      {
        href: `#/labels/${label}/${cluster}`,
        "aria-label": `${images(found)} labelled ${name} in ${clusterName(cluster)}`,
        "aria-current": chosen ? "true" : null,
        class: share > 0.5 ? "strong" : "",
      },
      count(found),
    );
    // Either so light that dark words can be read on it, or the full accent for light ones.
    link.style.setProperty("--share", String(share > 0.5 ? 100 : Math.round(60 * Math.sqrt(share))));
    return el("td", {}, link);
  });
  return el("tr", {}, el("th", { scope: "row" }, name), cells);
}

function opened(report: Report, labels: Labels, row: number, column: number): HTMLElement {
  const found = imagesWhere(report, (image) => labels.of[image] === row && report.cluster[image] === column);
  const title = `Labelled “${labels.names[row] ?? ""}”, in ${clusterName(column)}`;
  const size = el("p", { class: "quiet" }, images(found.length));
  return el("section", { class: "cell" }, el("h2", {}, title), size, gallery(report, found, title));
}
