import type { Chart, Cluster, Payload, Problems, Scores, Sheets, Suggestion } from "./payload";
import { integers, units } from "./unpack";

export type Numbers = ArrayLike<number>;

export interface Labels {
  names: string[];
  of: Numbers;
  scores: Scores;
  rows: number[];
  columns: number[]; // ids of clusters
  counts: number[][];
}

export interface Moment {
  epoch: number;
  x: Float32Array;
  y: Float32Array;
  images: Numbers;
}

/** The whole report, its arrays unpacked. Images are numbered as the rows of the run's table, clusters have ids. */
export interface Report {
  title: string;
  count: number;
  settings: [string, string][];
  warnings: [number, string][];
  clusters: Cluster[];
  epochs: number[];
  charts: Chart[];
  suggestion: Suggestion | null;
  cluster: Numbers; // the id of each image's cluster
  confidence: Float32Array;
  distance: Float32Array;
  x: Float32Array;
  y: Float32Array;
  slot: Numbers | null;
  labels: Labels | null;
  problems: Problems;
  sheets: Sheets | null;
  originals: string | null;
  note: string | null;
  moments: Moment[];
  nameOf(image: number): string;
  clusterOf(id: number): Cluster | undefined;
  /** What a cluster is called. */
  clusterName(id: number): string;
}

export function readReport(payload: Payload): Report {
  const { images, labels } = payload;
  const names = images.names === null ? null : images.names.split("\n");
  const byId = new Map(payload.clusters.map((cluster) => [cluster.id, cluster]));
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
    clusterOf: (id) => byId.get(id),
    clusterName: (id) => byId.get(id)?.name ?? `Cluster ${id}`,
  };
}

/** The images for which a test holds. */
export function imagesWhere(report: Report, test: (image: number) => boolean): number[] {
  const found: number[] = [];
  for (let image = 0; image < report.count; image++) if (test(image)) found.push(image);
  return found;
}
