const MARGIN = 32; // pixels around the outermost dots, for their thumbnails
const NEAREST = 0.05; // of the half side: closer to a few equal positions the map does not begin

/** The positions of dots, from −1 to 1, y upwards, around 0. */
export interface Points {
  x: Float32Array;
  y: Float32Array;
  /** How far from 0 they reach. */
  reach: { x: number; y: number };
}

/** Half the height of the map, in the unit of positions, when all of them fit into it. */
export function homeReach({ reach }: Points, width: number, height: number): number {
  const inside = (side: number): number => Math.max(1, side - 2 * MARGIN);
  return Math.max(NEAREST, (reach.y * height) / inside(height), (reach.x * height) / inside(width));
}

export interface Listener {
  hover(image: number | null): void;
  select(images: number[]): void;
  view(): void;
}

export interface Plot {
  readonly kind: "webgl" | "canvas";
  /** Whether the dots are drawn, so that positions are known; a million take a while. */
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
