/** The data of the page, from the script that `src/propos/review/report/write.py` writes. */

export interface Packed {
  kind: "u8" | "u16" | "i32" | "unit";
  base64?: string;
  file?: string; // the script that holds a large array
  bytes?: Uint8Array<ArrayBuffer>; // once that was loaded
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
  faults: Record<string, number[]>;
  counts: Record<string, number> & Record<"outliers" | "exact" | "near" | "bursts" | "unreadable" | "lowConfidence", number>;
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

/** An image drawn for an audit, and the id of its cluster at that time. */
export type Drawn = [image: number, cluster: number];

/** The drawn images, and what their answers say, a line each: `audit_state` of `src/propos/review/quality.py`. */
export interface Audit {
  drawn: Drawn[];
  lines: string[];
}

/** An image to check, and the id of the second most likely cluster. */
export type Question = [image: number, alternative: number];

/** The tree of clusters: `propos.runs.tree`. */
export interface TreePayload {
  leaves: number[]; // ids
  merges: [id: number, main: number, other: number][]; // from fine to coarse
  leaf: Packed; // each image's place in leaves
}

export interface ReviewPayload {
  run: string; // identifies the run in this browser
  folder: string; // its name
  ids: number[]; // of the clusters that training found
  tree: TreePayload | null;
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
    names: Packed | null; // as `names.ts` reads them; null: they are numbers
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
    PROPOS_AUDIT?: Drawn[];
    PROPOS_EDITS?: string; // the run's edits, a line each: `src/propos/review/report/edits.py` writes them
    PROPOS_EARLIER_EDITS?: string[]; // the files of those before them, if they are many
    PROPOS_PART?: string; // the text of the part that was loaded last: `parts.ts`
    PROPOS_PROPOSALS?: string; // what programs propose, in the same way
  }
}
