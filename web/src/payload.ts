/** The data of the page, from the script that `src/propos/review/report/write.py` writes. */

export interface Packed {
  kind: "u8" | "u16" | "i32" | "unit";
  base64: string;
}

export interface Cluster {
  id: number;
  name: string | null;
  size: number;
  tightness: number;
  typical: number[];
  borderline: number[];
  odd: number[];
  nearest: [id: number, likeness: number][];
  label: string | null;
  share: number | null;
}

export interface Sheets {
  side: number;
  whole: boolean; // thumbnails have all the pixels that the run read
  pitch: number;
  columns: number;
  perSheet: number;
  tiles: number; // on all sheets, including those of unreadable images
  files: string[];
}

export interface Scores {
  nmi: number;
  ami: number;
  ari: number;
  accuracy: number;
}

export interface LabelsPayload {
  names: string[];
  label: Packed;
  scores: Scores;
  rows: number[];
  columns: number[]; // ids of clusters
  counts: number[][];
}

/** Another run of the same images. */
export interface ComparisonPayload {
  name: string;
  made: string; // its method
  names: string[]; // of its clusters
  of: Packed; // each image's place in names
  rows: number[]; // places in names, those with a match first
  pairs: [place: number, id: number][]; // matching clusters
  nmi: number;
}

export interface Problems {
  outliers: number[];
  exact: number[][];
  near: number[][];
  bursts: number[][];
  unreadable: [string, string][];
  counts: Record<"outliers" | "exact" | "near" | "bursts" | "unreadable" | "lowConfidence", number>;
}

export interface Chart {
  title: string;
  caption: string;
  curves: Record<string, (number | null)[]>;
}

export interface Suggestion {
  range: number[];
  scores: Record<string, number[]>;
  chosen: number;
  why: string;
}

export interface MomentPayload {
  epoch: number;
  x: Packed;
  y: Packed;
  images: Packed;
}

/** An image to check, and the id of the second most likely cluster. */
export type Question = [image: number, alternative: number];

export interface ReviewPayload {
  run: string; // identifies the run in this browser
  folder: string; // its name
  ids: number[]; // of the clusters that training found
  trained: Packed | null; // where they differ from the corrected ones
  written: number; // number of edits when the page was written
  questions: Question[];
}

export interface Payload {
  version: number;
  title: string;
  settings: [string, string][];
  warnings: [number, string][];
  clusters: Cluster[];
  training: { epochs: number[]; charts: Chart[] };
  suggestion: Suggestion | null;
  images: {
    count: number;
    names: string | null;
    cluster: Packed;
    confidence: Packed;
    distance: Packed;
    x: Packed;
    y: Packed;
    slot: Packed | null;
  };
  review: ReviewPayload;
  labels: LabelsPayload | null;
  comparison: ComparisonPayload | null;
  problems: Problems;
  pictures: { sheets: Sheets | null; originals: string | null; note: string | null };
  moments: MomentPayload[];
}

declare global {
  interface Window {
    PROPOS_REPORT?: Payload;
    PROPOS_EDITS?: string; // all that the run has, a line each: `src/propos/review/report/edits.py` writes it
  }
}
