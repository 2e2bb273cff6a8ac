import { el } from "./dom";
import { Gallery } from "./gallery";
import { type Numbers, type Report, imagesWhere } from "./report";
import { count, images } from "./format";

/** Images by rows of some other grouping (labels, another run's clusters) and by this run's clusters. */
export interface Crossing {
  names: string[];
  of: Numbers; // each image's place in names
  rows: number[]; // places in names
  columns: number[]; // ids of clusters
  counts: number[][];
}

/** The texts of a matrix, and the link and text of a cell. */
export interface Wording {
  corner: string;
  caption: string;
  largest: string; // of a matrix too large to read
  address: (row: number, cluster: number) => string;
  cell: (found: number, name: string, cluster: string) => string;
}

/** The cell whose images are shown, if one was chosen: a place in the names and a cluster's id. */
export interface Cell {
  row: number | null;
  cluster: number | null;
}

const MOST_CELLS = 10_000; // of a matrix that can still be drawn and read
const LARGEST = 8;

/** Count images by row and current cluster; images without either are left out. */
export function countCells(report: Report, of: Numbers, rows: number[], columns: number[]): number[][] {
  const [rowAt, columnAt] = [new Map(rows.map((row, at) => [row, at])), new Map(columns.map((id, at) => [id, at]))];
  const counts = rows.map(() => columns.map(() => 0));
  for (let image = 0; image < report.count; image++) {
    const line = counts[rowAt.get(of[image] as number) ?? -1];
    const at = columnAt.get(report.cluster[image] as number);
    if (line !== undefined && at !== undefined) line[at] = (line[at] as number) + 1;
  }
  return counts;
}

/** Whether a matrix is too large to draw, so that only each row's largest cells are. */
export function isLarge({ rows, columns }: Crossing): boolean {
  return rows.length * columns.length > MOST_CELLS;
}

/** The matrix; a cell leads to its images. */
export function matrix(report: Report, crossing: Crossing, open: Cell, wording: Wording): HTMLElement {
  if (isLarge(crossing)) return largestCells(report, crossing, open, wording);
  const table = el(
    "table",
    { class: "matrix" },
    el("caption", { class: "unseen" }, wording.caption),
    el(
      "thead",
      {},
      el("tr", {}, el("td", { class: "corner" }, wording.corner), crossing.columns.map((id) => columnHead(report, id))),
    ),
    el("tbody", {}, crossing.rows.map((row, place) => matrixRow(report, crossing, row, place, open, wording))),
  );
  return scrolling(wording.caption, table);
}

function columnHead(report: Report, id: number): HTMLElement {
  return el("th", { scope: "col" }, el("a", { href: `#/cluster/${id}`, title: report.clusterName(id) }, id < 0 ? "✕" : id));
}

function matrixRow(report: Report, crossing: Crossing, row: number, place: number, open: Cell, wording: Wording): HTMLElement {
  const cells = crossing.columns.map((_, at) => {
    const found = crossing.counts[place]?.[at] ?? 0;
    if (found === 0) return el("td", {}, el("span", { class: "zero" }, "·"));
    return el("td", {}, cellLink(report, crossing, place, at, open, count(found), wording));
  });
  return el("tr", {}, el("th", { scope: "row" }, crossing.names[row] ?? ""), cells);
}

/** Of a matrix too large to read, each row's largest cells. */
function largestCells(report: Report, crossing: Crossing, open: Cell, wording: Wording): HTMLElement {
  const rows = crossing.rows.map((row, place) => {
    const counts = crossing.counts[place] ?? [];
    const largest = [...counts.keys()].filter((at) => (counts[at] ?? 0) > 0);
    largest.sort((one, other) => (counts[other] ?? 0) - (counts[one] ?? 0));
    const cells = largest.slice(0, LARGEST).map((at) => {
      const words = `${count(counts[at] ?? 0)} in ${crossing.columns[at] ?? ""}`;
      return el("td", {}, cellLink(report, crossing, place, at, open, words, wording));
    });
    return el("tr", {}, el("th", { scope: "row" }, crossing.names[row] ?? ""), cells);
  });
  const caption = el("caption", { class: "unseen" }, wording.largest);
  return scrolling(wording.largest, el("table", { class: "matrix" }, caption, el("tbody", {}, rows)));
}

function cellLink(
  report: Report, crossing: Crossing, place: number, at: number, open: Cell, words: string, wording: Wording,
): HTMLElement {
  const [row, cluster] = [crossing.rows[place] ?? 0, crossing.columns[at] ?? 0];
  const counts = crossing.counts[place] ?? [];
  const found = counts[at] ?? 0;
  const share = found / counts.reduce((sum, each) => sum + each, 0);
  const link = el(
    "a",
    {
      href: wording.address(row, cluster),
      "aria-label": wording.cell(found, crossing.names[row] ?? "", report.clusterName(cluster)),
      "aria-current": open.row === row && open.cluster === cluster ? "true" : null,
      class: share > 0.5 ? "strong" : "",
    },
    words,
  );
  // Either light enough for dark text, or the full accent for light text.
  link.style.setProperty("--share", String(share > 0.5 ? 100 : Math.round(60 * Math.sqrt(share))));
  return link;
}

function scrolling(words: string, table: HTMLElement): HTMLElement {
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": words }, table);
}

/** The images of the selected cell. */
export class OpenCell {
  readonly element: HTMLElement;
  private readonly heading = el("h2");
  private readonly size = el("p", { class: "quiet" });
  private readonly list: Gallery;

  constructor(
    private readonly report: Report,
    private readonly of: Numbers,
    private readonly row: number,
    private readonly cluster: number,
    private readonly title: (cluster: string) => string,
  ) {
    this.list = new Gallery(report, [], title(report.clusterName(cluster)));
    this.element = el("section", { class: "cell" }, this.heading, this.size, this.list.element);
  }

  show(): void {
    const { report, of, row, cluster } = this;
    const found = imagesWhere(report, (image) => of[image] === row && report.cluster[image] === cluster);
    this.heading.textContent = this.title(report.clusterName(cluster));
    this.size.textContent = images(found.length);
    this.list.show(found);
  }

  /** Scroll it into view. */
  seek(): void {
    this.heading.scrollIntoView({ block: "center" });
  }
}
