import type { Audit, ComparisonPayload, Chart, Cluster, Payload, Problems, Scores, Sheets, Suggestion } from "./payload";
import { Names } from "./names";
import { Review } from "./review/review";
import { Selection } from "./review/selection";
import { PictureSize } from "./size";
import { ascending, integers, units } from "./unpack";

const FARTHEST = 2; // that two unit vectors can be apart: one minus their cosine

export type Numbers = ArrayLike<number>;

export interface Labels {
  names: string[];
  of: Numbers;
  scores: Scores;
  rows: number[];
  columns: number[]; // ids of clusters
  counts: number[][];
}

export type Comparison = Omit<ComparisonPayload, "of"> & { of: Numbers };

export interface Moment {
  epoch: number;
  x: Float32Array;
  y: Float32Array;
  images: Numbers;
}

/**
 * The whole report, its arrays unpacked. Images are numbered as the rows of the run's table, clusters have ids.
 * Corrections change clusters and descriptions; all else stays.
 */
export interface Report {
  title: string;
  count: number;
  settings: [string, string][];
  warnings: [number, string][];
  clusters: Cluster[];
  epochs: number[];
  charts: Chart[];
  suggestion: Suggestion | null;
  cluster: Numbers; // the id of each image's cluster; −1: junk
  byId: Map<number, Cluster>;
  descriptions: ReadonlyMap<number, string>;
  firstNearest: ReadonlyMap<number, Cluster["nearest"]>; // when the page was written
  confidence: Float32Array;
  distance: Float32Array;
  x: Float32Array;
  y: Float32Array;
  slot: Numbers | null;
  labels: Labels | null;
  comparison: Comparison | null;
  problems: Problems;
  sheets: Sheets | null;
  originals: string | null;
  note: string | null;
  moments: Moment[];
  review: Review;
  selection: Selection;
  size: PictureSize;
  /** The images to check, block by block, and the second most likely cluster of each. */
  questions: ReadonlyMap<number, number>;
  audit: Audit;
  /** The second most likely cluster of an image, if it is to be checked and is in another one now. */
  alternativeOf(image: number): number | null;
  /** All images, the nearest to their prototype first, or the least confident first. */
  nearestFirst(): Int32Array;
  doubtfulFirst(): Int32Array;
  names: Names;
  /** The name of an image in the run's table. */
  keyOf(image: number): string;
  nameOf(image: number): string;
  clusterOf(id: number): Cluster | undefined;
  /** The display name of a cluster. */
  clusterName(id: number): string;
}

export function readReport(payload: Payload, edits: readonly string[], proposals: string): Report {
  const { images, labels } = payload;
  const names = new Names(images.names, images.count);
  const distance = units(images.distance).map((half) => FARTHEST * half);
  const confidence = units(images.confidence);
  const report: Omit<Report, "review"> & { review?: Review } = {
    title: payload.title,
    count: images.count,
    settings: payload.settings,
    warnings: payload.warnings,
    clusters: payload.clusters,
    epochs: payload.training.epochs,
    charts: payload.training.charts,
    suggestion: payload.suggestion,
    cluster: integers(images.cluster),
    byId: new Map(payload.clusters.map((cluster) => [cluster.id, cluster])),
    descriptions: new Map(),
    firstNearest: new Map(payload.clusters.map(({ id, nearest }) => [id, nearest])),
    confidence,
    distance,
    x: units(images.x),
    y: units(images.y),
    slot: images.slot === null ? null : integers(images.slot),
    labels: labels === null ? null : { ...labels, of: integers(labels.label) },
    comparison: payload.comparison === null ? null : { ...payload.comparison, of: integers(payload.comparison.of) },
    problems: payload.problems,
    sheets: payload.pictures.sheets,
    originals: payload.pictures.originals,
    note: payload.pictures.note,
    moments: payload.moments.map(({ epoch, x, y, images }) => ({ epoch, x: units(x), y: units(y), images: integers(images) })),
    selection: new Selection(),
    size: new PictureSize(payload.pictures.sheets, payload.pictures.originals !== null),
    questions: new Map(payload.review.questions),
    audit: { drawn: window.PROPOS_AUDIT ?? [], lines: [] },
    alternativeOf: (image) => alternative(report as Report, image),
    nearestFirst: once(() => ascending(distance, FARTHEST)),
    doubtfulFirst: once(() => ascending(confidence, 1)),
    names,
    keyOf: (image) => names.at(image),
    nameOf: (image) => (names.numbered ? `image ${image}` : names.at(image)),
    clusterOf: (id) => report.byId.get(id),
    clusterName: (id) => report.byId.get(id)?.name ?? `Cluster ${id}`,
  };
  report.review = new Review(report as Report, payload.review, edits, proposals);
  return report as Report;
}

function alternative(report: Report, image: number): number | null {
  const asked = report.questions.get(image);
  const now = asked === undefined ? null : report.review.partOf(asked);
  return now === null || now === report.cluster[image] || report.clusterOf(now) === undefined ? null : now;
}

/** Compute a value when it is first needed. */
function once<T>(compute: () => T): () => T {
  let found: T | null = null;
  return () => (found ??= compute());
}

/** The images for which a test holds, in the order given or their own. */
export function imagesWhere(report: Report, test: (image: number) => boolean, order: Int32Array | null = null): number[] {
  const found: number[] = [];
  for (let at = 0; at < report.count; at++) {
    const image = order === null ? at : (order[at] as number);
    if (test(image)) found.push(image);
  }
  return found;
}
