import { arrange, el } from "../dom";
import type { Cluster } from "../payload";
import { type Report, imagesWhere } from "../report";
import { JUNK } from "../review/replay";
import { tileOf } from "../thumb";
import { affineOf } from "./affine";
import { type Plot, type Points, tileSide } from "./plot";

const MOST_NUMBERS = 200;
const MOST_SCANNED = 100_000;
const FRAME = 2;

/** Which image's thumbnail fills each square, and where the squares begin. */
interface Shown {
  cells: Map<number, number>;
  side: number;
  columns: number;
  shiftX: number;
  shiftY: number;
}

/** Whether the images have so few pixels that these are shown as squares. */
export function isCrisp(report: Report): boolean {
  return (report.sheets?.side ?? 0) <= 32;
}

/** A cluster's number, and where it is. */
interface Middle {
  cluster: Cluster;
  element: HTMLElement;
  x: number;
  y: number;
}

/** The layer over the dots: the clusters' ids and, if switched on, thumbnails. */
export class Overlay {
  readonly element = el("div", { class: "overlay", "aria-hidden": "true" });
  thumbnails = false;
  /** The colour of an image's frame. */
  ink: (image: number) => string = () => "transparent";
  /** Whether an image's thumbnail is drawn. */
  shows: (image: number) => boolean = () => true;
  private readonly canvas = el("canvas");
  private numbers: Middle[] = [];
  private order: number[] | null = null;
  private shown: Shown | null = null;
  private readonly sheets = new Map<string, HTMLImageElement>();
  private waiting = 0;

  constructor(
    private readonly report: Report,
    private readonly points: Points,
    private readonly plot: () => Plot | null,
  ) {
    this.number();
  }

  /** Place each cluster's id among its current images. */
  number(): void {
    const known = new Map(this.numbers.map((number) => [number.cluster, number]));
    this.numbers = this.report.clusters.length > MOST_NUMBERS ? [] : middles(this.report, this.points, known);
    arrange(this.element, [this.canvas, ...this.numbers.map(({ element }) => element)]);
  }

  /** Draw again with the next frame. */
  update(): void {
    if (this.waiting === 0) this.waiting = requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    this.waiting = 0;
    const plot = this.plot();
    if (plot === null || !plot.ready()) return;
    const { sx, dx, sy, dy } = affineOf(plot);
    for (const { element, x, y } of this.numbers) {
      element.style.transform = `translate(${(x * sx + dx).toFixed(1)}px, ${(y * sy + dy).toFixed(1)}px) translate(-50%, -50%)`;
    }
    this.canvas.hidden = !this.thumbnails;
    this.shown = null;
    if (this.thumbnails) this.drawThumbnails(plot);
  }

  /** The image whose thumbnail lies at a place of the map. */
  imageAt(x: number, y: number): number | null {
    if (this.shown === null) return null;
    const { cells, side, columns, shiftX, shiftY } = this.shown;
    return cells.get(cellOf((x - shiftX) / side, (y - shiftY) / side, columns)) ?? null;
  }

  /** One thumbnail for each square of the screen that holds a dot, the most typical images first. */
  private drawThumbnails(plot: Plot): void {
    const { clientWidth: width, clientHeight: height } = this.element;
    this.canvas.width = width * devicePixelRatio;
    this.canvas.height = height * devicePixelRatio;
    const context = this.canvas.getContext("2d") as CanvasRenderingContext2D;
    context.scale(devicePixelRatio, devicePixelRatio);
    const smooth = !isCrisp(this.report);
    context.imageSmoothingEnabled = smooth;
    context.imageSmoothingQuality = "high";
    const cells = new Map<number, number>();
    const side = tileSide(this.points, width, height);
    const columns = Math.ceil(width / side) + 1;
    const { sx, dx, sy, dy } = affineOf(plot);
    // The squares move with the map, so that pictures do not jump while it is dragged.
    const [shiftX, shiftY] = [Math.round(dx % side), Math.round(dy % side)];
    this.shown = { cells, side, columns, shiftX, shiftY };
    this.order ??= typicalFirst(this.report);
    for (const image of this.order) {
      const px = (this.points.x[image] as number) * sx + dx;
      const py = (this.points.y[image] as number) * sy + dy;
      if (px < 0 || py < 0 || px > width || py > height || !this.shows(image)) continue;
      const [column, row] = [Math.floor((px - shiftX) / side), Math.floor((py - shiftY) / side)];
      const cell = cellOf(column, row, columns);
      if (cells.has(cell)) continue;
      cells.set(cell, image);
      this.drawTile(context, image, column * side + shiftX, row * side + shiftY, side);
    }
  }

  private drawTile(context: CanvasRenderingContext2D, image: number, left: number, top: number, side: number): void {
    const tile = tileOf(this.report, image);
    if (tile === null) return;
    const sheet = this.sheet(tile.file);
    if (!sheet.complete || sheet.naturalWidth === 0) return;
    context.fillStyle = this.ink(image);
    context.fillRect(left, top, side - 1, side - 1);
    const inner = side - 1 - 2 * FRAME;
    context.drawImage(sheet, tile.left, tile.top, tile.side, tile.side, left + FRAME, top + FRAME, inner, inner);
  }

  private sheet(file: string): HTMLImageElement {
    let sheet = this.sheets.get(file);
    if (sheet === undefined) {
      sheet = el("img", { src: file, alt: "", load: () => this.update() });
      this.sheets.set(file, sheet);
    }
    return sheet;
  }
}

/** The number of the square in a column and row. */
function cellOf(column: number, row: number, columns: number): number {
  return (Math.floor(row) + 1) * (columns + 1) + Math.floor(column) + 1;
}

/** Each cluster's id at the median of its dots; positions of unchanged clusters are reused. */
function middles(report: Report, points: Points, known: ReadonlyMap<Cluster, Middle>): Middle[] {
  const fresh = report.clusters.filter((cluster) => !known.has(cluster));
  const members = new Map<number, number[]>(fresh.map(({ id }) => [id, []]));
  const step = Math.max(1, Math.floor(report.count / MOST_SCANNED));
  if (fresh.length > 0) for (let image = 0; image < report.count; image += step) members.get(report.cluster[image] as number)?.push(image);
  return report.clusters.flatMap((cluster) => {
    const { id } = cluster;
    const own = members.get(id) ?? [];
    if (own.length === 0) return known.get(cluster) ?? [];
    const element = el("span", { class: "number", title: report.clusterName(id) }, id === JUNK ? "✕" : id);
    return [{ cluster, element, x: median(own, points.x), y: median(own, points.y) }];
  });
}

function median(images: number[], values: Float32Array): number {
  const sorted = Float32Array.from(images, (image) => values[image] as number).sort();
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/** Images with a picture, the most typical first. */
function typicalFirst(report: Report): number[] {
  return imagesWhere(report, (image) => (report.slot?.[image] ?? -1) >= 0, report.nearestFirst());
}
