import type { Points } from "./plot";

const CELLS = 128;

/** An index of dots by position, to find the one under the pointer quickly. */
export class Grid {
  private readonly starts = new Uint32Array(CELLS * CELLS + 1);
  private readonly images: Uint32Array;

  constructor(private readonly points: Points) {
    const count = points.x.length;
    const cell = new Uint32Array(count);
    for (let image = 0; image < count; image++) {
      const at = CELLS * index(points.y[image] as number) + index(points.x[image] as number);
      cell[image] = at;
      this.starts[at + 1] = (this.starts[at + 1] as number) + 1;
    }
    for (let at = 0; at < CELLS * CELLS; at++) {
      this.starts[at + 1] = (this.starts[at + 1] as number) + (this.starts[at] as number);
    }
    this.images = new Uint32Array(count);
    const next = this.starts.slice();
    for (let image = 0; image < count; image++) {
      const at = cell[image] as number;
      this.images[next[at] as number] = image;
      next[at] = (next[at] as number) + 1;
    }
  }

  /** The dot nearest to a position, within a radius. */
  nearest(x: number, y: number, radius: number): number | null {
    let best: number | null = null;
    let least = radius * radius;
    for (let row = index(y - radius); row <= index(y + radius); row++) {
      for (let column = index(x - radius); column <= index(x + radius); column++) {
        const at = CELLS * row + column;
        for (let place = this.starts[at] as number; place < (this.starts[at + 1] as number); place++) {
          const image = this.images[place] as number;
          const distance = ((this.points.x[image] as number) - x) ** 2 + ((this.points.y[image] as number) - y) ** 2;
          if (distance < least) [least, best] = [distance, image];
        }
      }
    }
    return best;
  }
}

function index(value: number): number {
  return Math.min(CELLS - 1, Math.max(0, Math.floor(((value + 1) / 2) * CELLS)));
}
