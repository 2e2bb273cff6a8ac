import type { Cluster } from "../payload";
import type { Report } from "../report";
import { count, counted, images } from "../format";
import type { Edit } from "./edits";
import { JUNK } from "./replay";

/** A description of an edit, in the past tense. */
export function describeEdit(report: Report, edit: Edit): string {
  const name = (id: number): string => report.clusterName(id);
  switch (edit.op) {
    case "rename":
      return edit.name === null ? `Removed the name of cluster ${edit.cluster}` : `Named cluster ${edit.cluster} “${edit.name}”`;
    case "describe":
      return edit.text === null ? `Removed the description of ${name(edit.cluster)}` : `Described ${name(edit.cluster)}`;
    case "merge":
      return `Merged ${edit.clusters.map((id) => `cluster ${id}`).join(", ")} into ${name(edit.into)}`;
    case "split":
      return `Split ${images(edit.images.length)} off as ${name(edit.into)}`;
    case "move":
      return `Moved ${images(edit.images.length)} to ${name(edit.into)}`;
    case "junk":
    case "confirm": {
      const what = "images" in edit ? images(edit.images.length) : `all of ${name(edit.cluster)}`;
      return edit.op === "junk" ? `Marked ${what} as junk` : `Confirmed ${what}`;
    }
    case "wrong":
      return `Marked ${images(edit.images.length)} as wrong`;
    case "cut":
      return `Cut the tree into ${counted(report.clusters.filter(({ id }) => isCluster(id)).length, "cluster")}`;
    case "dismiss":
      return "Dismissed a proposal";
    default:
      return edit.op === "undo" ? "Undone" : "Redone";
  }
}

const [TIGHT, LOOSE] = [0.5, 0.3]; // silhouettes; clusters of noise stay below the lower one

/** A cluster's compactness in words: its tightness compared with the distance to the nearest cluster. */
export function cohesion({ tightness, nearest }: Cluster): { word: string; meaning: string } {
  const likeness = nearest[0]?.[1] ?? 0;
  // An estimate of its mean silhouette: (b − a) / b with the mean distance a to its own prototype, and b to the next one.
  const silhouette = 1 - (1 - tightness) / Math.max(1e-6, 1 - tightness * likeness);
  if (silhouette >= TIGHT) return { word: "tight", meaning: "The cluster's images are similar, and clearly separate from others." };
  if (silhouette >= LOOSE) return { word: "loose", meaning: "The cluster's images differ from each other: it may mix several classes." };
  return { word: "very loose", meaning: "The cluster's images are hardly nearer to it than to another: it probably mixes classes." };
}

/** The number of reviewed images. */
export function reviewedCount(report: Report): { seen: number; all: number } {
  let seen = 0;
  for (const each of report.review.seenByCluster.values()) seen += each;
  return { seen, all: report.count };
}

export const reviewedText = (seen: number, all: number): string => `${count(seen)} of ${count(all)} reviewed`;

/** Whether a cluster can be named and merged; junk cannot. */
export const isCluster = (id: number | null): id is number => id !== null && id !== JUNK;
