import type { Report } from "./report";
import type { Similar } from "./review/server";

export const FOUND = 1_000; // at most, as the server gives
const EXAMPLES = 1_000; // of each kind, at most

export interface Query {
  yes: readonly number[];
  no: readonly number[];
  /** Whether an image is left out. */
  skip: (image: number) => boolean;
}

/** The images most like some: by the server's embeddings, or, in a page without a server, by the map. */
export async function similarTo(report: Report, { yes, no, skip }: Query): Promise<Similar | null> {
  if (report.review.saving === null) return nearestOnMap(report, yes, skip);
  const bits = new Uint8Array(Math.ceil(report.count / 8));
  for (let image = 0; image < report.count; image++) if (skip(image)) bits[image >> 3] = (bits[image >> 3] as number) | (1 << (image & 7));
  return report.review.similar({ yes: evenly(yes, EXAMPLES), no: evenly(no, EXAMPLES), skip: inBase64(bits), count: Math.min(FOUND, report.count) });
}

function nearestOnMap(report: Report, yes: readonly number[], skip: (image: number) => boolean): Similar {
  const { x, y, count } = report;
  const apart = (one: number, other: number): number => ((x[one] as number) - (x[other] as number)) ** 2 + ((y[one] as number) - (y[other] as number)) ** 2;
  const examples = evenly(yes, 50);
  const distance = Float64Array.from({ length: count }, (_, image) => Math.min(...examples.map((each) => apart(image, each))));
  const rows = Array.from({ length: count }, (_, image) => image).filter((image) => !skip(image));
  return { rows: rows.sort((a, b) => (distance[a] as number) - (distance[b] as number)).slice(0, FOUND), probabilities: null };
}

/** All of a list, or of a long one as many, from all over it. */
export function evenly<T>(list: readonly T[], most: number): T[] {
  if (list.length <= most) return [...list];
  return Array.from({ length: most }, (_, place) => list[Math.floor((place * list.length) / most)] as T);
}

function inBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8_192) text += String.fromCharCode(...bytes.subarray(at, at + 8_192));
  return btoa(text);
}
