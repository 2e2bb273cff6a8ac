import { Grid } from "./grid";
import { type Listener, type Plot, type Points, dotSize, homeReach } from "./plot";
import { type Vertex, inside } from "./polygon";

const REACH = 8; // pixels from a dot at which the pointer finds it

/** Dots drawn on an ordinary canvas, for browsers without WebGL. */
export function canvasPlot(canvas: HTMLCanvasElement, points: Points, listener: Listener): Plot {
  const context = canvas.getContext("2d") as CanvasRenderingContext2D;
  const grid = new Grid(points);
  const size = Math.round(Math.max(2, dotSize(points.x.length) * 0.8));
  let [centreX, centreY, zoom] = [0, 0, 1];
  let [codes, inks]: [ArrayLike<number>, Uint32Array] = [[], new Uint32Array()];
  let lassoing = false;
  let path: Vertex[] = [];
  let from: Vertex | null = null;
  let waiting = 0;

  const scale = (): number => (zoom * canvas.height) / 2 / homeReach(points, canvas.width, canvas.height);
  const project = (x: number, y: number): Vertex => [
    canvas.width / 2 + (x - centreX) * scale(),
    canvas.height / 2 - (y - centreY) * scale(),
  ];
  const unproject = (px: number, py: number): Vertex => [
    (px - canvas.width / 2) / scale() + centreX,
    (canvas.height / 2 - py) / scale() + centreY,
  ];

  function draw(): void {
    waiting = 0;
    const { width, height } = canvas;
    if (width === 0 || height === 0) return;
    const image = context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    for (let at = 0; at < points.x.length; at++) {
      const [px, py] = project(points.x[at] as number, points.y[at] as number);
      const [left, top] = [Math.round(px - size / 2), Math.round(py - size / 2)];
      if (left < 0 || top < 0 || left + size > width || top + size > height) continue;
      const ink = inks[codes[at] ?? 0] as number;
      for (let row = top; row < top + size; row++) pixels.fill(ink, row * width + left, row * width + left + size);
    }
    context.putImageData(image, 0, 0);
    drawPath();
  }

  function drawPath(): void {
    if (path.length < 2) return;
    context.beginPath();
    for (const [x, y] of path) context.lineTo(...project(x, y));
    context.closePath();
    context.strokeStyle = getComputedStyle(canvas).getPropertyValue("--accent");
    context.lineWidth = 2;
    context.stroke();
  }

  function changed(): void {
    if (waiting === 0) waiting = requestAnimationFrame(draw);
    listener.view();
  }

  function resize(): void {
    canvas.width = canvas.clientWidth;
    canvas.height = canvas.clientHeight;
    changed();
  }

  function choose(): void {
    const chosen: number[] = [];
    for (let at = 0; at < points.x.length; at++) {
      if (inside(path, points.x[at] as number, points.y[at] as number)) chosen.push(at);
    }
    listener.select(chosen);
  }

  function under(event: PointerEvent): number | null {
    return grid.nearest(...unproject(event.offsetX, event.offsetY), REACH / scale());
  }

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    from = [event.offsetX, event.offsetY];
    path = lassoing ? [unproject(...from)] : [];
  });
  canvas.addEventListener("pointermove", (event) => {
    if (from === null) return listener.hover(under(event));
    if (lassoing) path.push(unproject(event.offsetX, event.offsetY));
    else {
      centreX -= (event.offsetX - from[0]) / scale();
      centreY += (event.offsetY - from[1]) / scale();
      from = [event.offsetX, event.offsetY];
    }
    changed();
  });
  canvas.addEventListener("pointerup", () => {
    if (path.length > 2) choose();
    [from, path] = [null, []];
    changed();
  });
  canvas.addEventListener("pointerleave", () => listener.hover(null));
  canvas.addEventListener("click", (event) => {
    const image = under(event as PointerEvent);
    if (!lassoing && image !== null) listener.select([image]);
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const [x, y] = unproject(event.offsetX, event.offsetY);
    zoom = Math.max(0.5, zoom * Math.exp(-event.deltaY / 400));
    const [nowX, nowY] = unproject(event.offsetX, event.offsetY);
    [centreX, centreY] = [centreX + x - nowX, centreY + y - nowY];
    changed();
  });
  resize();

  return {
    kind: "canvas",
    paint(newCodes, colours) {
      [codes, inks] = [newCodes, Uint32Array.from(colours, ink)];
      changed();
    },
    lasso: (on) => void (lassoing = on),
    ready: () => true,
    project,
    move(right, up) {
      const half = canvas.height / 2 / scale();
      [centreX, centreY] = [centreX + right * half, centreY + up * half];
      changed();
    },
    zoom(factor) {
      zoom = Math.max(0.5, zoom * factor);
      changed();
    },
    home() {
      [centreX, centreY, zoom] = [0, 0, 1];
      changed();
    },
    resize,
    destroy: () => cancelAnimationFrame(waiting),
  };
}

/** A colour such as #cc6677 as the canvas stores it. */
function ink(colour: string): number {
  const [red, green, blue] = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16)) as [number, number, number];
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}
