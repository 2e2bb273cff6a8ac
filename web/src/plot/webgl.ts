import createScatterplot, { createRenderer } from "regl-scatterplot";
import { type Listener, type Plot, type Points, dotSize, homeReach } from "./plot";

/** Dots drawn by WebGL, a million of them if need be; nothing where WebGL is missing. */
export function webglPlot(canvas: HTMLCanvasElement, points: Points, listener: Listener, background: string): Plot | null {
  if (!hasWebgl()) return null;
  const renderer = createRenderer();
  if (!renderer.isSupported) return null;
  const size = dotSize(points.x.length);
  const room = canvas.parentElement as HTMLElement; // the library gives the canvas a size of its own, which no window changes
  // From a distance of 1 the library shows positions from −1 to 1 over the height.
  const homeDistance = (): number => homeReach(points, room.clientWidth, Math.max(1, room.clientHeight));
  const plot = createScatterplot({
    renderer,
    canvas,
    width: room.clientWidth,
    height: room.clientHeight,
    backgroundColor: background,
    pointSize: size,
    pointSizeSelected: 2,
    pointOutlineWidth: 2,
    opacity: 0.85,
    lassoOnLongPress: false,
    lassoInitiator: false,
    lassoMinDelay: 5,
    lassoMinDist: 2,
    deselectOnDblClick: false,
    // A worker would need an address of its own, which a page opened from a file may not make.
    spatialIndexUseWorker: false,
    colorBy: "valueA",
    cameraDistance: homeDistance(),
  });
  plot.subscribe("pointOver", (image) => listener.hover(image));
  plot.subscribe("pointOut", () => listener.hover(null));
  plot.subscribe("select", ({ points: chosen }) => listener.select(chosen));
  plot.subscribe("deselect", () => listener.select([]));
  plot.subscribe("view", () => listener.view());
  const place = affine(points);
  let drawn: Promise<void> = Promise.resolve();
  let codesNow: ArrayLike<number> | null = null;
  let ready = false;
  let left = false;
  let home = homeDistance();

  return {
    kind: "webgl",
    paint(codes, colours) {
      // One call after the other: the library refuses to draw while it draws.
      drawn = drawn.then(async () => {
        if (left) return;
        await plot.set({ pointColor: colours, pointColorActive: "#ffffff", pointColorHover: "#ffffff" });
        if (codesNow !== codes) {
          const index = codesNow === null ? {} : { spatialIndex: plot.get("spatialIndex") };
          codesNow = codes;
          await plot.draw({ x: points.x, y: points.y, valueA: codes }, { zDataType: "categorical", ...index });
        }
        ready = true;
        listener.view();
      });
      // What was still being drawn when the screen was left is of no interest.
      drawn = drawn.catch((error: unknown) => {
        if (!left) throw error;
      });
    },
    lasso: (on) => void plot.set({ mouseMode: on ? "lasso" : "panZoom" }),
    ready: () => ready,
    // The library knows no positions before it has drawn.
    project: (x, y) => place((image) => (ready ? plot.getScreenPosition(image) : undefined), x, y),
    move(right, up) {
      const [x, y] = plot.get("cameraTarget");
      const distance = plot.get("cameraDistance");
      void plot.set({ cameraTarget: [x + right * distance, y + up * distance] });
      listener.view();
    },
    zoom(factor) {
      void plot.set({ cameraDistance: plot.get("cameraDistance") / factor });
      listener.view();
    },
    home() {
      void plot.set({ cameraTarget: [0, 0], cameraDistance: homeDistance() });
      listener.view();
    },
    resize() {
      const cameraDistance = (plot.get("cameraDistance") * homeDistance()) / home;
      home = homeDistance();
      void plot.set({ width: room.clientWidth, height: room.clientHeight, cameraDistance }).then(() => listener.view());
    },
    destroy() {
      left = true;
      ready = false;
      plot.destroy();
      renderer.destroy();
    },
  };
}

function hasWebgl(): boolean {
  try {
    return document.createElement("canvas").getContext("webgl") !== null;
  } catch {
    return false;
  }
}

type Where = (image: number) => [number, number] | undefined;

/** The library gives dots in pixels only; four extreme dots give scale and offset. */
function affine({ x, y }: Points): (where: Where, px: number, py: number) => [number, number] {
  const [left, right] = extremes(x);
  const [bottom, top] = extremes(y);
  return (where, px, py) => [
    between(x[left] ?? 0, x[right] ?? 0, where(left)?.[0] ?? 0, where(right)?.[0] ?? 0, px),
    between(y[bottom] ?? 0, y[top] ?? 0, where(bottom)?.[1] ?? 0, where(top)?.[1] ?? 0, py),
  ];
}

function between(from: number, to: number, low: number, high: number, value: number): number {
  return from === to ? low : low + ((high - low) * (value - from)) / (to - from);
}

function extremes(values: Float32Array): [number, number] {
  let low = 0;
  let high = 0;
  for (let at = 1; at < values.length; at++) {
    if ((values[at] as number) < (values[low] as number)) low = at;
    if ((values[at] as number) > (values[high] as number)) high = at;
  }
  return [low, high];
}
