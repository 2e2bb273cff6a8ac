import type { Packed } from "./payload";
import { integers } from "./unpack";

const BLOCK = 64; // names from one that is written whole to the next: `src/propos/review/report/name_list.py` writes them
const END = 10; // a line break, which no name contains

/** The rows of images by their names; a name has to be looked up before its row is known. */
export interface Rows {
  lookUp(names: Iterable<string>): void;
  rowOf(name: string): number | undefined;
}

/** The names of a run's images in little space: a name is spelt out when it is asked for. Without a list, they are numbers. */
export class Names implements Rows {
  private readonly bytes: Uint8Array | null;
  private readonly starts: Uint32Array; // of the blocks
  private readonly rows = new Map<string, number>(); // those that were asked for
  private readonly text = new TextDecoder();
  private held: { block: number; names: string[] } = { block: -1, names: [] }; // the last block that was spelt out

  constructor(
    packed: Packed | null,
    readonly count: number,
  ) {
    this.bytes = packed === null ? null : (integers(packed) as Uint8Array);
    this.starts = this.bytes === null ? new Uint32Array() : startsOf(this.bytes, count);
  }

  get numbered(): boolean {
    return this.bytes === null;
  }

  /** The name of an image in the run's table. */
  at(image: number): string {
    if (this.bytes === null) return String(image);
    const block = Math.floor(image / BLOCK);
    if (this.held.block !== block) this.held = { block, names: this.spelt(this.bytes, block) };
    return this.held.names[image % BLOCK] ?? "";
  }

  /** The names of some images, whose rows are remembered. */
  some(images: readonly number[]): string[] {
    const names = images.map((image) => this.at(image));
    if (this.bytes !== null) names.forEach((name, at) => this.rows.set(name, images[at] as number));
    return names;
  }

  /** The row of a name that was looked up. */
  rowOf(name: string): number | undefined {
    if (this.bytes !== null) return this.rows.get(name);
    const row = Number(name);
    return String(row) === name && Number.isInteger(row) && row >= 0 && row < this.count ? row : undefined;
  }

  /** Look up the rows of names, of all that are not known yet at once. */
  lookUp(names: Iterable<string>): void {
    if (this.bytes === null) return;
    const wanted = new Set<string>();
    for (const name of names) if (!this.rows.has(name)) wanted.add(name);
    for (let image = 0; image < this.count && wanted.size > 0; image++) {
      const name = this.at(image);
      if (wanted.delete(name)) this.rows.set(name, image);
    }
  }

  private spelt(bytes: Uint8Array, block: number): string[] {
    let before: number[] = [];
    let at = this.starts[block] as number;
    const names: string[] = [];
    for (let left = Math.min(BLOCK, this.count - block * BLOCK); left > 0; left--) {
      before = before.slice(0, bytes[at++] as number);
      for (; bytes[at] !== END; at++) before.push(bytes[at] as number);
      at++;
      names.push(this.text.decode(Uint8Array.from(before)));
    }
    return names;
  }
}

/** Where each block begins. */
function startsOf(bytes: Uint8Array, count: number): Uint32Array {
  const starts = new Uint32Array(Math.ceil(count / BLOCK));
  for (let image = 0, at = 0; image < count; image++) {
    if (image % BLOCK === 0) starts[image / BLOCK] = at;
    at = bytes.indexOf(END, at + 1) + 1; // the first byte is a length, not a letter
  }
  return starts;
}
