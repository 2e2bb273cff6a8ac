export type Vertex = [number, number];

/** Tell whether a position is inside a polygon, by counting the edges to its right. */
export function inside(polygon: readonly Vertex[], x: number, y: number): boolean {
  let odd = false;
  let [lastX, lastY] = polygon[polygon.length - 1] as Vertex;
  for (const [nextX, nextY] of polygon) {
    if (nextY > y !== lastY > y && x < ((lastX - nextX) * (y - nextY)) / (lastY - nextY) + nextX) odd = !odd;
    [lastX, lastY] = [nextX, nextY];
  }
  return odd;
}
