import { Pane, el } from "../dom";
import { OpenCell, type Wording, countCells, isLarge, matrix } from "../matrix";
import type { Labels, Report } from "../report";
import { JUNK } from "../review/replay";
import type { Screen } from "../shell";
import { fixed, images, displayName } from "../format";

const MEANINGS: Record<string, string> = {
  accuracy: "share of images correct under the best one-to-one matching",
  nmi: "normalised mutual information",
  ari: "Rand index, adjusted for chance",
  ami: "mutual information, adjusted for chance",
};

const NONE = "If folders name the classes, run with --labels folders to compare clusters with labels here.";
const WORDS = "Rows are labels, columns clusters; matches lie on the diagonal. Choose a cell to see its images.";
const LARGE_WORDS = "Each label with the clusters that contain most of its images: 23 in 5 means 23 images in cluster 5. Choose one to see them.";
const OLD_SCORES = "Scores date from when this page was written; propos report updates them. The table includes all corrections.";
const WORDING: Wording = {
  corner: "label ↓ cluster →",
  caption: "Images by label and cluster",
  largest: "Each label's largest clusters",
  address: (label, cluster) => `#/labels/${label}/${cluster}`,
  cell: (found, name, cluster) => `${images(found)} labelled ${name} in ${cluster}`,
};

/** The agreement of clusters with labels; a cell of the matrix opens its images. */
export function labelsScreen(report: Report, label: number | null, cluster: number | null): Screen {
  const title = "Comparison with labels";
  const found = report.labels;
  if (found === null) {
    return { title: () => title, content: el("div", { class: "screen" }, el("h1", {}, "This run has no labels"), el("p", {}, NONE)) };
  }
  const old = el("p", { class: "quiet" }, OLD_SCORES);
  const words = el("p", { class: "quiet" });
  const table = new Pane(el("div"));
  const cell = label === null || cluster === null ? null : new OpenCell(report, found.of, label, cluster, (name) => `Labelled “${found.names[label] ?? ""}”, in ${name}`);

  function corrected(): boolean {
    const labels = report.review.unreported ? recounted(report, found as Labels) : (found as Labels);
    old.hidden = !report.review.unreported;
    words.textContent = isLarge(labels) ? LARGE_WORDS : WORDS;
    table.show([labels.columns, labels.counts, report.clusters.map(({ name }) => name)], () => [matrix(report, labels, { row: label, cluster }, WORDING)]);
    cell?.show();
    return true;
  }

  corrected();
  const content = el("div", { class: "screen" }, el("h1", {}, title), scores(found), old, el("h2", {}, "Images by label and cluster"), words, table.element, cell?.element ?? null);
  return { title: () => title, content, corrected, shown: () => cell?.seek() };
}

/** Count images by label and current cluster; new columns come last. */
function recounted(report: Report, labels: Labels): Labels {
  const ids = report.clusters.filter(({ id }) => id !== JUNK).map(({ id }) => id);
  const there = new Set(ids);
  const columns = [...labels.columns.filter((id) => there.has(id)), ...ids.filter((id) => !labels.columns.includes(id))];
  return { ...labels, columns, counts: countCells(report, labels.of, labels.rows, columns) };
}

function scores({ scores }: Labels): HTMLElement {
  const { accuracy, nmi, ari, ami } = scores;
  return el(
    "dl",
    { class: "scores" },
    Object.entries({ accuracy, nmi, ari, ami }).map(([key, value]) =>
      el("div", {}, el("dt", {}, displayName(key)), el("dd", {}, fixed(value)), el("dd", { class: "quiet" }, MEANINGS[key] ?? "")),
    ),
  );
}
