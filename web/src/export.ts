import { el } from "./dom";
import type { Report } from "./report";
import { showDialog } from "./review/dialogs";
import { JUNK } from "./review/replay";
import { count, images } from "./format";
import { studioAddress } from "./studio/address";

type Cell = string | number | boolean | null;
type Row = Record<string, Cell>;

/** A row for each image with its current cluster: the columns of `propos export` except those that it computes. */
function labelRows(report: Report): Row[] {
  const { labels, review } = report;
  return Array.from({ length: report.count }, (_, id) => {
    const cluster = report.cluster[id] as number;
    return {
      id,
      image: report.keyOf(id),
      cluster,
      name: cluster === JUNK ? null : (report.clusterOf(cluster)?.name ?? null),
      confirmed: review.confirmed(id),
      ...(labels === null ? {} : { label: labels.names[labels.of[id] as number] ?? null }),
    };
  });
}

function asCsv(rows: readonly Row[]): string {
  const line = (cells: readonly Cell[]): string => `${cells.map((cell) => (typeof cell === "string" ? quoted(guarded(cell)) : String(cell ?? ""))).join(",")}\n`;
  return [Object.keys(rows[0] ?? {}), ...rows.map((row) => Object.values(row))].map(line).join("");
}

function asJson(rows: readonly Row[]): string {
  return `[\n${rows.map((row) => ` ${JSON.stringify(row)}`).join(",\n")}\n]\n`;
}

const quoted = (cell: string): string => `"${cell.replaceAll('"', '""')}"`;

/** A cell that no spreadsheet takes for a formula: `propos.common.spreadsheets.guarded` does the same. */
function guarded(cell: string): string {
  const number = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(cell);
  return /^'*[=+\-@\t\r]/.test(cell) && !number ? `'${cell}` : cell;
}

/** Hand a text over as a file. */
export function saveAs(name: string, text: string, type: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address));
}

/** Offer the labels as a file, and say which command gives them in other forms. */
export function showExport(report: Report): void {
  const studio = studioAddress("/export"); // its screen has every form, and needs no command
  if (studio !== null) return location.assign(studio);
  const { folder, unsaved } = report.review;
  const csv = (): void => saveAs("labels.csv", asCsv(labelRows(report)), "text/csv");
  const json = (): void => saveAs("labels.json", asJson(labelRows(report)), "application/json");
  const close = el("button", { type: "button" }, "Close");
  const columns = report.labels === null ? "image, cluster, name and whether it is confirmed" : "image, cluster, name, whether it is confirmed, and label";
  const dialog = el(
    "dialog",
    { class: "question", "aria-label": "Export" },
    el("h2", {}, "Export the labels"),
    el("p", {}, `A row for each of ${images(report.count)}: ${columns}, with every correction so far. Junk is in cluster −1.`),
    el("p", { class: "forms" }, el("button", { type: "button", class: "main", click: csv }, "Download CSV"), " ", el("button", { type: "button", click: json }, "Download JSON")),
    el("p", {}, "For confidences, images in folders, Parquet, COCO, FiftyOne or the model, run:"),
    el("pre", {}, `propos export ${folder} --to folders -o sorted`),
    unsaved.length > 0 && el("p", { class: "quiet" }, `The command does not include ${count(unsaved.length)} of your corrections yet: ${SAVE_FIRST[report.review.saving === null ? "file" : "server"]}`),
    el("div", { class: "answers" }, close),
  );
  close.addEventListener("click", () => dialog.close());
  showDialog(dialog);
}

const SAVE_FIRST = { file: "apply them to the run first (Download, below).", server: "they are not saved yet." };
