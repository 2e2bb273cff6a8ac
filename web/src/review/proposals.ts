import type { Correction, Edit } from "./edits";
import { countingOf } from "./replay";

/** A change that a program proposes (docs/review.md); without an edit there is nothing to accept. */
export interface Proposal {
  id: string;
  kind: string;
  source: string;
  evidence: string;
  cluster?: number;
  edit?: Correction & { id: string };
}

/** The name that is proposed for a cluster. */
export interface ProposedName {
  id: string;
  name: string;
  evidence: string;
}

export function readProposals(text: string): Proposal[] {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return JSON.parse(`[${lines.join(",")}]`) as Proposal[];
}

/**
 * The open names by cluster: neither accepted nor dismissed, of clusters that exist and have no name. `runs/proposals.py`
 * has the same rule.
 */
export function openNames(
  proposals: readonly Proposal[],
  edits: readonly Edit[],
  clusters: ReadonlyMap<number, { name: string | null }>,
): Map<number, ProposedName> {
  const settled = new Set(countingOf(edits).map((edit) => (edit.op === "dismiss" ? edit.proposal : edit.id)));
  const open = new Map<number, ProposedName>();
  for (const { id, evidence, edit } of proposals) {
    if (edit?.op !== "rename" || edit.name === null || settled.has(id)) continue;
    if (clusters.get(edit.cluster)?.name === null) open.set(edit.cluster, { id, name: edit.name, evidence });
  }
  return open;
}
