import type { Edit } from "./edits";

export const JUNK = -1; // in the place of a cluster's id: the image belongs to none

/** What edits make of a run's clusters: the same as `propos.runs.corrections`, which has the last word. */
export class Replay {
  readonly confirmed: Uint8Array;
  readonly names = new Map<number, string>();
  readonly descriptions = new Map<number, string>();
  private readonly ids: number[];
  private readonly number: Map<number, number>;
  private readonly whole: number[]; // the number of the cluster that each is part of by now: mostly its own
  private readonly place: Int32Array; // the number under which an image was put somewhere; −1: junk

  constructor(
    private readonly rows: ReadonlyMap<string, number>,
    cluster: ArrayLike<number>,
    ids: readonly number[],
  ) {
    this.ids = [...ids];
    this.number = new Map(this.ids.map((id, number) => [id, number]));
    this.whole = this.ids.map((_, number) => number);
    this.confirmed = new Uint8Array(cluster.length);
    this.place = Int32Array.from(cluster, (id) => this.number.get(id) as number);
  }

  /** Apply edits one after another; those that were undone take no part. */
  applyAll(edits: readonly Edit[]): void {
    const counting = new Set<string>();
    for (const edit of edits) {
      if (edit.op === "undo") counting.delete(edit.edit);
      else counting.add(edit.op === "redo" ? edit.edit : edit.id);
    }
    for (const edit of edits) if (counting.has(edit.id)) this.apply(edit);
  }

  apply(edit: Edit): void {
    switch (edit.op) {
      case "move":
        return this.put(edit.images, this.standing(edit.into));
      case "split":
        this.number.set(edit.into, this.ids.length);
        this.whole.push(this.ids.length);
        this.ids.push(edit.into);
        return this.put(edit.images, this.standing(edit.into));
      case "merge":
        return this.merge(edit.clusters, edit.into);
      case "rename":
        return this.say(this.names, edit.cluster, edit.name);
      case "describe":
        return this.say(this.descriptions, edit.cluster, edit.text);
      case "junk":
        for (const row of this.meant(edit)) [this.place[row], this.confirmed[row]] = [JUNK, 0];
        return;
      case "confirm":
        for (const row of this.meant(edit)) this.confirmed[row] = this.place[row] === JUNK ? 0 : 1;
    }
  }

  /** The id of each image's cluster by now. */
  cluster(): Int32Array {
    const now = this.whole.map((number) => this.ids[number] as number);
    return this.place.map((number) => (number === JUNK ? JUNK : (now[number] as number)));
  }

  /** The ids of the clusters that were not made part of another. */
  standingIds(): Set<number> {
    return new Set(this.whole.map((number) => this.ids[number] as number));
  }

  private standing(cluster: number): number | undefined {
    const number = this.number.get(cluster);
    return number === undefined ? undefined : this.whole[number];
  }

  private say(said: Map<number, string>, cluster: number, text: string | null): void {
    const number = this.standing(cluster);
    if (number === undefined) return;
    if (text === null) said.delete(this.ids[number] as number);
    else said.set(this.ids[number] as number, text);
  }

  private merge(clusters: readonly number[], into: number): void {
    const whole = this.standing(into);
    for (const cluster of clusters) {
      const part = this.standing(cluster);
      if (part === undefined || whole === undefined || part === whole) continue;
      this.whole.forEach((each, number) => each === part && (this.whole[number] = whole));
      this.names.delete(this.ids[part] as number);
      this.descriptions.delete(this.ids[part] as number);
    }
  }

  private put(images: readonly string[], number: number | undefined): void {
    if (number === undefined) return;
    for (const row of this.rowsOf(images)) [this.place[row], this.confirmed[row]] = [number, 1];
  }

  /** The images that an edit names, or all that its cluster holds by now. */
  private meant(edit: { images: string[] } | { cluster: number }): number[] {
    if ("images" in edit) return this.rowsOf(edit.images);
    const wanted = this.standing(edit.cluster);
    const rows: number[] = [];
    if (wanted === undefined) return rows;
    this.place.forEach((number, row) => number !== JUNK && this.whole[number] === wanted && rows.push(row));
    return rows;
  }

  private rowsOf(images: readonly string[]): number[] {
    return images.map((name) => this.rows.get(name)).filter((row) => row !== undefined);
  }
}

/** Replay a log from the beginning. */
export function replay(images: readonly string[], cluster: ArrayLike<number>, ids: readonly number[], edits: readonly Edit[]): Replay {
  const state = new Replay(new Map(images.map((name, row) => [name, row])), cluster, ids);
  state.applyAll(edits);
  return state;
}
