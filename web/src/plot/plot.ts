/** What the map asks of whatever draws its dots. Positions run from −1 to 1, y upwards. */
export interface Points {
  x: Float32Array;
  y: Float32Array;
}

export interface Listener {
  hover(image: number | null): void;
  select(images: number[]): void;
  view(): void;
}

export interface Plot {
  readonly kind: "webgl" | "canvas";
  /** Whether the dots are there, so that positions can be told; a million take a while. */
  ready(): boolean;
  /** Colour every dot: `codes` are places in `colours`. */
  paint(codes: ArrayLike<number>, colours: string[]): void;
  /** Draw round dots with the mouse instead of moving the map. */
  lasso(on: boolean): void;
  /** Where a position is on the screen, in pixels of the map. */
  project(x: number, y: number): [number, number];
  move(right: number, up: number): void;
  zoom(factor: number): void;
  home(): void;
  resize(): void;
  destroy(): void;
}

/** Fewer dots may be larger. */
export function dotSize(count: number): number {
  return Math.max(1.5, Math.min(8, 60 / count ** 0.3));
}
