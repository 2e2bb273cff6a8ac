/** What a person corrected, in the format of edits.jsonl (docs/review.md). */
export type Correction =
  | { op: "rename"; cluster: number; name: string | null }
  | { op: "describe"; cluster: number; text: string | null }
  | { op: "merge"; clusters: number[]; into: number }
  | { op: "split"; images: string[]; into: number }
  | { op: "move"; images: string[]; into: number }
  | { op: "junk" | "wrong"; images: string[] }
  | { op: "junk"; cluster: number }
  | ({ op: "confirm"; how?: "reviewed" | "audited" } & ({ images: string[] } | { cluster: number }))
  | { op: "cut"; node: number; open: number[] } // through the tree of clusters
  | { op: "dismiss"; proposal: string } // of `propos.runs.proposals`
  | { op: "undo" | "redo"; edit: string };

export type Edit = { v: 1; id: string; at?: string } & Correction;

export function newEdit(correction: Correction): Edit {
  return { v: 1, id: newId(), at: new Date().toISOString(), ...correction };
}

/** crypto.randomUUID is there only where the browser trusts the page, which it may not do for a file. */
function newId(): string {
  if (typeof crypto.randomUUID === "function") return crypto.randomUUID();
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** An edit a line. */
export const asLines = (edits: readonly Edit[]): string => edits.map((edit) => `${JSON.stringify(edit)}\n`).join("");

/** Edits of a line each; one that comes again counts once. */
export function fromLines(text: string): Edit[] {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const edits = JSON.parse(`[${lines.join(",")}]`) as Edit[];
  const byId = new Map(edits.map((edit) => [edit.id, edit]));
  return byId.size === edits.length ? edits : [...byId.values()];
}

const MOST_CLUSTERS = 2 ** 31; // ids are below it

/** The clusters that edits may refer to, and the edits; a copy starts with all that another knows. */
export class Known {
  private readonly clusters = new Set<number>();
  private readonly edits = new Map<string, Edit>();
  private most: number; // the largest id that a cluster ever had

  constructor(
    ids: readonly number[],
    edits: readonly Edit[] = [],
    private readonly before: Known | null = null,
  ) {
    this.most = before?.most ?? -1;
    for (const id of ids) this.addCluster(id);
    for (const edit of edits) this.add(edit);
  }

  add(edit: Edit): void {
    this.edits.set(edit.id, edit);
    if (edit.op === "split") this.addCluster(edit.into);
  }

  hasCluster(id: number): boolean {
    return this.clusters.has(id) || (this.before?.hasCluster(id) ?? false);
  }

  edit(id: string): Edit | undefined {
    return this.edits.get(id) ?? this.before?.edit(id);
  }

  /** An id that no cluster ever had. */
  free(): number {
    let id = this.most + 1;
    if (id >= MOST_CLUSTERS) for (id = 0; this.hasCluster(id); ) id++;
    return id;
  }

  private addCluster(id: number): void {
    this.clusters.add(id);
    this.most = Math.max(this.most, id);
  }
}

/**
 * The edits of one window after those that were saved meanwhile: what is saved already is left out, and what was split
 * off under an id that another onLog too gets a free one, or the one under which it was saved. `Known.take_in` of
 * `propos.runs.edits` does the same. Returns also which clusters have other ids by now.
 */
export function after(saved: Known, own: readonly Edit[]): { kept: Edit[]; renumbered: Map<number, number> } {
  const known = new Known([], [], saved);
  const renumbered = new Map<number, number>();
  const kept: Edit[] = [];
  for (const edit of own) {
    const before = known.edit(edit.id);
    if (edit.op === "split" && before?.op === "split") {
      if (edit.into !== before.into) renumbered.set(edit.into, before.into);
    } else if (edit.op === "split" && known.hasCluster(edit.into)) renumbered.set(edit.into, known.free());
    if (before !== undefined) continue;
    const fresh = renumbered.size === 0 ? edit : withClusters(edit, (id) => renumbered.get(id) ?? id);
    known.add(fresh);
    kept.push(fresh);
  }
  return { kept, renumbered };
}

function withClusters(edit: Edit, now: (id: number) => number): Edit {
  const changed = { ...edit };
  if ("cluster" in changed) changed.cluster = now(changed.cluster);
  if ("clusters" in changed) changed.clusters = changed.clusters.map(now);
  if ("into" in changed) changed.into = now(changed.into);
  return changed;
}

/** The edits that undo and redo apply to next: the last that counts, and the last undone with nothing after it. */
export class UndoHistory {
  private readonly byId = new Map<string, Edit>();
  private readonly done: Edit[] = [];
  private undone: Edit[] = [];

  add(edit: Edit): void {
    if (edit.op !== "undo" && edit.op !== "redo") {
      this.byId.set(edit.id, edit);
      this.done.push(edit);
      this.undone = [];
      return;
    }
    const [from, to] = edit.op === "undo" ? [this.done, this.undone] : [this.undone, this.done];
    const at = from.findLastIndex(({ id }) => id === edit.edit);
    const meant = this.byId.get(edit.edit);
    if (at >= 0) from.splice(at, 1);
    if (meant !== undefined && !to.includes(meant)) to.push(meant);
  }

  get undo(): Edit | null {
    return this.done.at(-1) ?? null;
  }

  get redo(): Edit | null {
    return this.undone.at(-1) ?? null;
  }
}
