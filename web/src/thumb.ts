import { el } from "./dom";
import type { Report } from "./report";
import { fixed } from "./format";

const CRISP = 32; // images up to this side are shown with their pixels

export interface Tile {
  sheet: number;
  file: string;
  left: number; // in pixels of the sheet
  top: number;
  side: number;
}

/** Where an image's thumbnail is, if it has one. */
export function tileOf(report: Report, image: number): Tile | null {
  const { sheets, slot } = report;
  const at = slot?.[image] ?? -1;
  if (sheets === null || at < 0) return null;
  const place = at % sheets.perSheet;
  const sheet = Math.floor(at / sheets.perSheet);
  return {
    sheet,
    file: sheets.files[sheet] as string,
    left: sheets.pitch * (place % sheets.columns),
    top: sheets.pitch * Math.floor(place / sheets.columns),
    side: sheets.side,
  };
}

/** A picture of an image in its parent's size, cut out of its sheet; a quiet placeholder where there is none. */
export function picture(report: Report, image: number): HTMLElement {
  const tile = tileOf(report, image);
  const { sheets } = report;
  if (tile === null || sheets === null) return el("span", { class: "picture none", "aria-hidden": "true" }, "no picture");
  const inSheet = Math.min(sheets.perSheet, sheets.tiles - sheets.perSheet * tile.sheet);
  const rows = Math.ceil(inSheet / sheets.columns);
  const span = el("span", { class: sheets.side <= CRISP ? "picture crisp" : "picture", "aria-hidden": "true" });
  // All in shares of the element, so that any size shows exactly one tile.
  const scale = sheets.pitch / sheets.side;
  span.style.backgroundImage = `url("${tile.file}")`;
  span.style.backgroundSize = `${100 * scale * sheets.columns}% ${100 * scale * rows}%`;
  const left = offset(tile.left / sheets.pitch, scale, sheets.columns);
  const top = offset(tile.top / sheets.pitch, scale, rows);
  span.style.backgroundPosition = `${left}% ${top}%`;
  return span;
}

/** CSS measures an offset in shares of what does not fit. */
function offset(index: number, scale: number, tiles: number): number {
  const rest = scale * tiles - 1;
  return rest === 0 ? 0 : (100 * scale * index) / rest;
}

/** The description of an image for screen readers. */
export function described(report: Report, image: number): string {
  const cluster = report.clusterName(report.cluster[image] as number);
  return `${report.nameOf(image)}, ${cluster}, confidence ${fixed(report.confidence[image] ?? 0, 2)}`;
}
