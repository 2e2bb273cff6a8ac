import { el } from "../dom";
import { gallery } from "../gallery";
import { type Labels, type Report, imagesWhere } from "../report";
import type { Screen } from "../shell";
import { count, fixed, images, spoken } from "../words";

const MEANINGS: Record<string, string> = {
  accuracy: "share right under the best one-to-one matching",
  nmi: "shared information, normalised",
  ari: "pairs of images, adjusted for chance",
  ami: "shared information, adjusted for chance",
};

const NONE = "Run with --labels folders where images lie in folders that name them, and this screen compares.";
const WORDS = "Rows are labels, columns clusters; matches lie on the diagonal. Choose a cell to see its images.";
const LARGE_WORDS = "Each label with the clusters that hold most of its images: 23 in 5 are 23 images in cluster 5. Choose one to see them.";
const OLD_SCORES = "Scores are those of when this page was written; propos report computes them again. The table follows corrections.";
const MOST_CELLS = 10_000; // of a matrix that can still be drawn and read
const LARGEST = 8;

/** The cell whose images are shown, if one was chosen: a place in the labels' names and a cluster's id. */
interface Cell {
  label: number | null;
  cluster: number | null;
}

/** How clusters and labels agree; a cell of the matrix opens its images. */
export function labelsScreen(report: Report, label: number | null, cluster: number | null): Screen {
  const { labels } = report;
  const title = "Against the labels";
  if (labels === null) return { title, content: el("div", { class: "screen" }, el("h1", {}, "This run has no labels"), el("p", {}, NONE)) };
  const cell = label === null || cluster === null ? null : opened(report, labels, label, cluster);
  const large = labels.rows.length * labels.columns.length > MOST_CELLS;
  const content = el(
    "div",
    { class: "screen" },
    el("h1", {}, title),
    scores(labels),
    report.review.unreported > 0 && el("p", { class: "quiet" }, OLD_SCORES),
    el("h2", {}, "Who is where"),
    el("p", { class: "quiet" }, large ? LARGE_WORDS : WORDS),
    large ? largestCells(report, labels, { label, cluster }) : matrix(report, labels, { label, cluster }),
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

function matrix(report: Report, labels: Labels, open: Cell): HTMLElement {
  const table = el(
    "table",
    { class: "matrix" },
    el("caption", { class: "unseen" }, "Images by label and cluster"),
    el(
      "thead",
      {},
      el("tr", {}, el("td", { class: "corner" }, "label ↓ cluster →"), labels.columns.map((id) => columnHead(report, id))),
    ),
    el("tbody", {}, labels.rows.map((label, place) => matrixRow(report, labels, label, place, open))),
  );
  return scrolling("Confusion matrix", table);
}

function columnHead(report: Report, id: number): HTMLElement {
  return el("th", { scope: "col" }, el("a", { href: `#/cluster/${id}`, title: report.clusterName(id) }, id));
}

function matrixRow(report: Report, labels: Labels, label: number, place: number, open: Cell): HTMLElement {
  const cells = labels.columns.map((_, at) => {
    const found = labels.counts[place]?.[at] ?? 0;
    if (found === 0) return el("td", {}, el("span", { class: "zero" }, "·"));
    return el("td", {}, cellLink(report, labels, place, at, open, count(found)));
  });
  return el("tr", {}, el("th", { scope: "row" }, labels.names[label] ?? ""), cells);
}

/** Of a matrix too large to read, each label's largest cells. */
function largestCells(report: Report, labels: Labels, open: Cell): HTMLElement {
  const rows = labels.rows.map((label, place) => {
    const counts = labels.counts[place] ?? [];
    const largest = [...counts.keys()].filter((at) => (counts[at] ?? 0) > 0);
    largest.sort((one, other) => (counts[other] ?? 0) - (counts[one] ?? 0));
    const cells = largest.slice(0, LARGEST).map((at) => {
      const words = `${count(counts[at] ?? 0)} in ${labels.columns[at] ?? ""}`;
      return el("td", {}, cellLink(report, labels, place, at, open, words));
    });
    return el("tr", {}, el("th", { scope: "row" }, labels.names[label] ?? ""), cells);
  });
  const caption = el("caption", { class: "unseen" }, "Each label's largest clusters");
  return scrolling("Each label's largest clusters", el("table", { class: "matrix" }, caption, el("tbody", {}, rows)));
}

function cellLink(report: Report, labels: Labels, place: number, at: number, open: Cell, words: string): HTMLElement {
  const [label, cluster] = [labels.rows[place] ?? 0, labels.columns[at] ?? 0];
  const counts = labels.counts[place] ?? [];
  const found = counts[at] ?? 0;
  const share = found / counts.reduce((sum, each) => sum + each, 0);
  const link = el(
    "a",
    {
      href: `#/labels/${label}/${cluster}`,
      "aria-label": `${images(found)} labelled ${labels.names[label] ?? ""} in ${report.clusterName(cluster)}`,
      "aria-current": open.label === label && open.cluster === cluster ? "true" : null,
      class: share > 0.5 ? "strong" : "",
    },
    words,
  );
  // Either so light that dark words can be read on it, or the full accent for light ones.
  link.style.setProperty("--share", String(share > 0.5 ? 100 : Math.round(60 * Math.sqrt(share))));
  return link;
}

function scrolling(words: string, table: HTMLElement): HTMLElement {
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": words }, table);
}

function opened(report: Report, labels: Labels, label: number, cluster: number): HTMLElement {
  const found = imagesWhere(report, (image) => labels.of[image] === label && report.cluster[image] === cluster);
  const title = `Labelled “${labels.names[label] ?? ""}”, in ${report.clusterName(cluster)}`;
  const size = el("p", { class: "quiet" }, images(found.length));
  return el("section", { class: "cell" }, el("h2", {}, title), size, gallery(report, found, title));
}
