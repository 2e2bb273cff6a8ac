import type { Listener, Plot, Points } from "./plot";

export const MOST_DOTS = 2_000_000; // that a browser draws and keeps an index of

/** Draw an even selection of the dots, if there are more than a browser can; images keep their numbers. */
export function drawSome(points: Points, listener: Listener, draw: (points: Points, listener: Listener) => Plot, most = MOST_DOTS): Plot {
  const count = points.x.length;
  if (count <= most) return draw(points, listener);
  const images = Uint32Array.from({ length: most }, (_, dot) => Math.floor((dot * count) / most));
  const some = (values: Float32Array): Float32Array => Float32Array.from(images, (image) => values[image] as number);
  const plot = draw(
    { ...points, x: some(points.x), y: some(points.y) },
    {
      ...listener,
      hover: (dot) => listener.hover(dot === null ? null : (images[dot] as number)),
      select: (dots) => listener.select(dots.map((dot) => images[dot] as number)),
    },
  );
  let last: { codes: ArrayLike<number>; some: Float32Array } | null = null; // the same codes are drawn again for other colours
  return {
    ...plot,
    paint(codes, colours) {
      if (last?.codes !== codes) last = { codes, some: Float32Array.from(images, (image) => codes[image] as number) };
      plot.paint(last.some, colours);
    },
  };
}
