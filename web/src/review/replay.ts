import type { Rows } from "../names";
import type { Tree } from "../tree";
import type { Edit } from "./edits";

export const JUNK = -1; // in the place of a cluster's id: the image belongs to none

/** How a person judged an image, as in `propos.runs.corrections`. */
export const [UNCONFIRMED, REVIEWED, AUDITED, MOVED, WRONG] = [0, 1, 2, 3, 4] as const;

type Back = () => void; // takes an edit back, if all that came after it has been taken back

/**
 * What edits make of a run's clusters: the same as `propos.runs.corrections`, which has the last word.
 * Each edit that counts is kept with its way back, so that a log that changed is not applied from the beginning.
 */
export class Replay {
  readonly how: Uint8Array; // how an image came to be in its cluster for certain, or not
  readonly names = new Map<number, string>();
  readonly descriptions = new Map<number, string>();
  private readonly ids: number[];
  private readonly number: Map<number, number>;
  private readonly whole: number[]; // the number of the cluster that each is part of by now: mostly its own
  private readonly place: Int32Array; // the number under which an image was put somewhere; −1: junk
  private open = new Set<number>(); // ids of nodes of the tree that are divided
  private readonly steps: { edit: Edit; back: Back }[] = [];
  private log: readonly Edit[] = [];

  constructor(
    private readonly rows: Rows,
    cluster: ArrayLike<number>,
    ids: readonly number[],
    private readonly tree: Tree | null = null,
  ) {
    const others = tree === null ? [] : tree.ids.filter((id) => !ids.includes(id)).sort((a, b) => a - b);
    this.ids = [...ids, ...others];
    this.number = new Map(this.ids.map((id, number) => [id, number]));
    this.whole = this.ids.map((_, number) => number);
    this.how = new Uint8Array(cluster.length);
    this.place = Int32Array.from(cluster, (id) => this.number.get(id) as number);
    if (tree === null) return;
    const leaves = tree.leaves.map((id) => this.number.get(id) as number);
    for (let image = 0; image < this.place.length; image++) this.place[image] = leaves[tree.leaf[image] as number] as number;
    this.regroup(tree, tree.root, tree.above(ids));
  }

  /** Apply a log to the clusters; undone edits are skipped. */
  follow(log: readonly Edit[]): void {
    const goesOn = sharedStart(this.log, log) === this.log.length;
    const fresh = goesOn ? log.slice(this.log.length) : [];
    this.log = log;
    const simply = goesOn && fresh.every(({ op }) => op !== "undo" && op !== "redo");
    const counting = simply ? fresh : countingOf(log);
    const same = simply ? 0 : this.backTo(counting);
    this.rows.lookUp(namesIn(counting.slice(same)));
    for (let at = same; at < counting.length; at++) this.apply(counting[at] as Edit);
  }

  /** Undo all edits from the first that differs from these; return the number of those left. */
  private backTo(counting: readonly Edit[]): number {
    const same = sharedStart(
      this.steps.map(({ edit }) => edit),
      counting,
    );
    while (this.steps.length > same) this.steps.pop()?.back();
    return same;
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

  /** The id of the cluster that an id refers to now; null if its split was undone. */
  partOf(cluster: number): number | null {
    const number = this.standing(cluster);
    return number === undefined ? null : (this.ids[number] as number);
  }

  /** Whether a node of the tree is divided. */
  isOpen(id: number): boolean {
    return this.open.has(id);
  }

  private apply(edit: Edit): void {
    this.steps.push({ edit, back: this.perform(edit) });
  }

  private perform(edit: Edit): Back {
    switch (edit.op) {
      case "move":
        return this.put(edit.images, this.standing(edit.into));
      case "split":
        return this.split(edit.images, edit.into);
      case "merge":
        return this.merge(edit.clusters, edit.into);
      case "cut":
        return this.tree === null || !this.number.has(edit.node) ? () => {} : this.divide(this.tree, edit.node, edit.open);
      case "rename":
        return this.say(this.names, edit.cluster, edit.name);
      case "describe":
        return this.say(this.descriptions, edit.cluster, edit.text);
      case "junk":
        return this.write(this.meant(edit), () => [JUNK, UNCONFIRMED]);
      case "confirm":
        return this.judge(this.meant(edit), edit.how === "audited" ? AUDITED : REVIEWED);
      case "wrong":
        return this.judge(this.rowsOf(edit.images), WRONG);
      default:
        return () => {};
    }
  }

  private standing(cluster: number): number | undefined {
    const number = this.number.get(cluster);
    return number === undefined ? undefined : this.whole[number];
  }

  /**
   * Apply a cut; what was confirmed of a divided cluster is not confirmed of its parts. An image that was wrong in a cluster may be
   * right in a larger one.
   */
  private divide(tree: Tree, node: number, open: readonly number[]): Back {
    const { place, how, whole } = this;
    const [wholeBefore, openBefore] = [[...whole], this.open];
    const divided = this.regroup(tree, node, new Set(open));
    const forgotten: [row: number, how: number][] = [];
    place.forEach((number, row) => {
      const now = how[row] as number;
      if (number === JUNK || now === UNCONFIRMED) return;
      const [before, wrong] = [wholeBefore[number] as number, now === WRONG];
      if (divided.has(before) ? !wrong : wrong && whole[number] !== before) forgotten.push([row, now]);
    });
    for (const [row] of forgotten) how[row] = UNCONFIRMED;
    return () => {
      for (const [row, was] of forgotten) how[row] = was;
      wholeBefore.forEach((each, number) => (whole[number] = each));
      this.open = openBefore;
    };
  }

  /** Regroup a branch of the tree, and what was merged into it; returns the numbers of its open nodes. */
  private regroup(tree: Tree, node: number, open: ReadonlySet<number>): Set<number> {
    const { cluster, divided } = tree.cut(node, open);
    const number = (id: number): number => this.number.get(id) as number;
    const now = new Map([...cluster].map(([id, to]) => [number(id), number(to)]));
    this.whole.forEach((each, at) => (this.whole[at] = now.get(at) ?? now.get(each) ?? each));
    this.open = new Set([...[...this.open].filter((id) => !cluster.has(id)), ...divided]);
    return new Set(divided.map(number));
  }

  private say(said: Map<number, string>, cluster: number, text: string | null): Back {
    const number = this.open.has(cluster) ? this.number.get(cluster) : this.standing(cluster);
    return number === undefined ? () => {} : write(said, this.ids[number] as number, text ?? undefined);
  }

  private merge(clusters: readonly number[], into: number): Back {
    const [whole, before, backs] = [this.standing(into), [...this.whole], [] as Back[]];
    for (const cluster of clusters) {
      const part = this.standing(cluster);
      if (part === undefined || whole === undefined || part === whole) continue;
      this.whole.forEach((each, number) => each === part && (this.whole[number] = whole));
      for (const said of [this.names, this.descriptions]) backs.push(write(said, this.ids[part] as number, undefined));
    }
    return () => {
      before.forEach((each, number) => (this.whole[number] = each));
      for (const back of backs) back();
    };
  }

  private split(images: readonly string[], into: number): Back {
    this.number.set(into, this.ids.length);
    this.whole.push(this.ids.length);
    this.ids.push(into);
    const back = this.put(images, this.standing(into));
    return () => {
      back();
      this.number.delete(into);
      this.whole.pop();
      this.ids.pop();
    };
  }

  private put(images: readonly string[], number: number | undefined): Back {
    return number === undefined ? () => {} : this.write(this.rowsOf(images), () => [number, MOVED]);
  }

  private judge(rows: readonly number[], how: number): Back {
    return this.write(rows, (place) => [place, place === JUNK ? UNCONFIRMED : how]);
  }

  /** Give images a place, and say how they came there. */
  private write(rows: readonly number[], now: (place: number) => [place: number, how: number]): Back {
    const { place, how } = this;
    const before = rows.map((row) => 8 * (place[row] as number) + (how[row] as number));
    for (const row of rows) [place[row], how[row]] = now(place[row] as number);
    return () => rows.forEach((row, at) => ([place[row], how[row]] = [(before[at] as number) >> 3, (before[at] as number) & 7]));
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
    return images.map((name) => this.rows.rowOf(name)).filter((row) => row !== undefined);
  }
}

/** The images that edits name. */
function* namesIn(edits: readonly Edit[]): Iterable<string> {
  for (const edit of edits) if ("images" in edit) yield* edit.images;
}

/** Set or remove the text of a cluster. */
function write(said: Map<number, string>, id: number, text: string | undefined): Back {
  const before = said.get(id);
  const set = (now: string | undefined): void => void (now === undefined ? said.delete(id) : said.set(id, now));
  set(text);
  return () => set(before);
}

/** The edits of a log that count, in their order. */
export function countingOf(log: readonly Edit[]): Edit[] {
  const counting = new Set<string>();
  for (const edit of log) {
    if (edit.op === "undo") counting.delete(edit.edit);
    else counting.add(edit.op === "redo" ? edit.edit : edit.id);
  }
  return log.filter(({ id, op }) => op !== "undo" && op !== "redo" && counting.has(id));
}

/** The number of edits that two logs share at their start; a split may have got another id. */
export function sharedStart(one: readonly Edit[], other: readonly Edit[]): number {
  const alike = (a: Edit, b: Edit | undefined): boolean =>
    a === b || (b !== undefined && a.id === b.id && ("into" in a ? a.into : null) === ("into" in b ? b.into : null));
  const differs = one.findIndex((edit, at) => !alike(edit, other[at]));
  return differs < 0 ? one.length : differs;
}

/** Replay a log from the beginning. */
export function replay(images: readonly string[], cluster: ArrayLike<number>, ids: readonly number[], edits: readonly Edit[], tree: Tree | null = null): Replay {
  const rows = new Map(images.map((name, row) => [name, row]));
  const state = new Replay({ lookUp: () => {}, rowOf: (name) => rows.get(name) }, cluster, ids, tree);
  state.follow(edits);
  return state;
}
