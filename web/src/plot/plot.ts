const LARGEST_TILE = 64; // side of the square that a thumbnail fills, its frame included
const MARGIN = 12; // pixels around the outermost dots, at the least
const COVERED = 0.5; // of the map, where there are so few images that each has a larger square
const NEAREST = 0.05; // of the half side: closer to a few equal positions the map does not begin

/** The positions of dots, from −1 to 1, y upwards, around 0. */
export interface Points {
  x: Float32Array;
  y: Float32Array;
  /** How far from 0 they reach. */
  reach: { x: number; y: number };
  /** The side of the smallest square that a thumbnail may fill, in pixels. */
  smallestTile: number;
}

/** Half the height of the map, in the unit of positions, when all of them fit into it. */
export function homeReach(points: Points, width: number, height: number): number {
  const { reach } = points;
  const tile = tileSide(points, width, height);
  // Whole squares on both sides of the middle, so that the thumbnails of the outermost dots are not cut.
  const inside = (side: number): number => 2 * Math.max(1, Math.floor((side / 2 - MARGIN) / tile) * tile - 1);
  return Math.max(NEAREST, (reach.y * height) / inside(height), (reach.x * height) / inside(width));
}

/** The side of the square that a thumbnail fills. */
export function tileSide({ x, smallestTile }: Points, width: number, height: number): number {
  return Math.round(Math.min(LARGEST_TILE, Math.max(smallestTile, Math.sqrt((COVERED * width * height) / x.length))));
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
