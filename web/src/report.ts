import type { Chart, Cluster, Payload, Problems, Scores, Sheets, Suggestion } from "./payload";
import { integers, units } from "./unpack";

export type Ids = ArrayLike<number>;

export interface Labels {
  names: string[];
  of: Ids;
  scores: Scores;
  rows: number[];
  columns: number[];
  counts: number[][];
}

export interface Moment {
  epoch: number;
  x: Float32Array;
  y: Float32Array;
  images: Ids;
}

/** The whole report, its arrays unpacked. Images are numbered as the rows of the run's table. */
export interface Report {
  title: string;
  count: number;
  settings: [string, string][];
  warnings: [number, string][];
  clusters: Cluster[];
  epochs: number[];
  charts: Chart[];
  suggestion: Suggestion | null;
  cluster: Ids;
  confidence: Float32Array;
  distance: Float32Array;
  x: Float32Array;
  y: Float32Array;
  slot: Ids | null;
  labels: Labels | null;
  problems: Problems;
  sheets: Sheets | null;
  originals: string | null;
  note: string | null;
  moments: Moment[];
  nameOf(image: number): string;
}

export function readReport(payload: Payload): Report {
  const { images, labels } = payload;
  const names = images.names === null ? null : images.names.split("\n");
  const distance = units(images.distance).map((half) => 2 * half);
  return {
    title: payload.title,
    count: images.count,
    settings: payload.settings,
    warnings: payload.warnings,
    clusters: payload.clusters,
    epochs: payload.training.epochs,
    charts: payload.training.charts,
    suggestion: payload.suggestion,
    cluster: integers(images.cluster),
    confidence: units(images.confidence),
    distance,
    x: units(images.x),
    y: units(images.y),
    slot: images.slot === null ? null : integers(images.slot),
    labels: labels === null ? null : { ...labels, of: integers(labels.label) },
    problems: payload.problems,
    sheets: payload.pictures.sheets,
    originals: payload.pictures.originals,
    note: payload.pictures.note,
    moments: payload.moments.map(({ epoch, x, y, images }) => ({ epoch, x: units(x), y: units(y), images: integers(images) })),
    nameOf: (image) => (names === null ? `image ${image}` : (names[image] ?? "")),
  };
}

/** The images for which a test holds. */
export function imagesWhere(report: Report, test: (image: number) => boolean): number[] {
  const found: number[] = [];
  for (let image = 0; image < report.count; image++) if (test(image)) found.push(image);
  return found;
}

export function clusterName(cluster: Cluster | number): string {
  return `Cluster ${typeof cluster === "number" ? cluster : cluster.number}`;
}
