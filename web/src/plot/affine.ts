import type { Plot } from "./plot";

/** The current transform from positions to pixels: x·sx + dx, y·sy + dy. */
export interface Affine {
  sx: number;
  dx: number;
  sy: number;
  dy: number;
}

export function affineOf(plot: Plot): Affine {
  const [dx, dy] = plot.project(0, 0);
  const [x1, y1] = plot.project(1, 1);
  return { sx: x1 - dx, dx, sy: y1 - dy, dy };
}
