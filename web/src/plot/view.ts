import { el, isBrowserShortcut } from "../dom";
import { type Report, imagesWhere } from "../report";
import { openViewer } from "../viewer";
import { images } from "../format";
import { affineOf } from "./affine";
import { canvasPlot } from "./canvas";
import { type By, type Colouring, colouring, only } from "./colouring";
import { Overlay, isCrisp } from "./overlay";
import type { Plot, Points } from "./plot";
import { drawSome } from "./sample";
import { tooltip } from "./tooltip";
import { webglPlot } from "./webgl";

const KEYS = "Arrow keys move the map, plus and minus zoom, 0 shows all, Enter lists what is in view.";
const STEP = 0.2; // of the map's half side
const CLOSER = 1.4;
const STILL = 4; // pixels that a click may slip
const WIDEST = 1.8; // width over height of the map; dots on a line would make it a strip

/** The map itself: dots, what lies over them, and what keys and the pointer do. */
export class MapView {
  readonly element: HTMLElement;
  colours: Colouring;
  private readonly points: Points;
  private readonly canvas = el("canvas");
  private readonly overlay: Overlay;
  private readonly hint: ReturnType<typeof tooltip>;
  private readonly resized = new ResizeObserver(() => this.plot?.resize());
  private plot: Plot | null = null;
  private lassoing = false;
  private by: By = "cluster";
  private pressed: [number, number] = [0, 0];
  /** Called when drawing round images begins or ends. */
  lassoChanged: (on: boolean) => void = () => {};

  constructor(
    private readonly report: Report,
    private readonly chosen: (images: number[]) => void,
  ) {
    this.points = laidOnItsSide(pointsOf(report));
    this.colours = colouring(report, "cluster");
    this.hint = tooltip(report, this.points);
    this.overlay = new Overlay(report, this.points, () => this.plot);
    const label = `Map of ${images(report.count)}. ${KEYS}`;
    const attributes = { class: "map", tabindex: 0, role: "group", "aria-label": label };
    this.element = el("div", attributes, this.canvas, this.overlay.element, this.hint.element);
    this.element.style.setProperty("--aspect", this.aspect().toFixed(3));
    this.element.addEventListener("keydown", (event) => this.press(event));
    this.canvas.addEventListener("pointermove", (event) => this.overlay.thumbnails && this.hover(this.underPointer(event)));
    this.canvas.addEventListener("pointerleave", () => this.hover(null));
    this.canvas.addEventListener("pointerdown", ({ clientX, clientY }) => (this.pressed = [clientX, clientY]));
    this.canvas.addEventListener("click", (event) => this.overlay.thumbnails && this.open(this.underPointer(event), event));
  }

  /** Begin to draw; the element has its size only once it is on the page. */
  start(): void {
    const listener = {
      hover: (image: number | null) => !this.overlay.thumbnails && this.hover(image),
      select: (found: number[]) => this.select(found),
      view: () => this.overlay.update(),
    };
    const background = hex(getComputedStyle(this.element).backgroundColor);
    this.plot = drawSome(this.points, listener, (dots, heard) => webglPlot(this.canvas, dots, heard, background) ?? canvasPlot(this.canvas, dots, heard));
    this.element.dataset["plot"] = this.plot.kind;
    this.highlight(null);
    this.resized.observe(this.element);
  }

  stop(): void {
    this.resized.disconnect();
    this.plot?.destroy();
    this.plot = null;
  }

  colourBy(by: By): void {
    this.by = by;
    this.colours = colouring(this.report, by);
    this.highlight(null);
  }

  /** Show the current clusters. */
  corrected(): void {
    this.overlay.number();
    this.colourBy(this.by);
  }

  /** Make all but one colour faint. */
  highlight(code: number | null): void {
    const { codes } = this.colours;
    const colours = only(this.colours.colours, code);
    this.plot?.paint(codes, colours);
    this.overlay.ink = (image) => colours[codes[image] ?? 0] as string;
    this.overlay.shows = (image) => code === null || codes[image] === code;
    this.overlay.update();
  }

  lasso(on: boolean): void {
    this.lassoing = on;
    this.element.classList.toggle("lasso", on);
    this.plot?.lasso(on);
    this.lassoChanged(on);
  }

  thumbnails(on: boolean): void {
    this.overlay.thumbnails = on;
    this.overlay.update();
  }

  closer = (): void => this.plot?.zoom(CLOSER);
  farther = (): void => this.plot?.zoom(1 / CLOSER);
  home = (): void => this.plot?.home();

  /** Choose every image in view. */
  chooseView = (): void => {
    if (this.plot === null || !this.plot.ready()) return;
    const { clientWidth: width, clientHeight: height } = this.element;
    const { sx, dx, sy, dy } = affineOf(this.plot);
    this.chosen(
      imagesWhere(this.report, (image) => {
        const x = (this.points.x[image] as number) * sx + dx;
        const y = (this.points.y[image] as number) * sy + dy;
        return x >= 0 && y >= 0 && x <= width && y <= height;
      }),
    );
  };

  /** Width over height of a box that the dots fill. */
  private aspect(): number {
    const { x, y } = this.points.reach;
    return Math.min(WIDEST, x === 0 ? 1 : x / y);
  }

  private hover(image: number | null): void {
    if (this.plot !== null) this.hint.show(this.plot, image);
  }

  /** List the images that were drawn around, even if there are none; show a clicked one large. */
  private select(found: number[]): void {
    if (this.lassoing) this.chosen(found);
    else if (found.length > 0 && !this.overlay.thumbnails) openViewer(this.report, found, 0);
  }

  private open(image: number | null, { clientX, clientY }: MouseEvent): void {
    const dragged = Math.hypot(clientX - this.pressed[0], clientY - this.pressed[1]) > STILL;
    if (image !== null && !dragged && !this.lassoing) openViewer(this.report, [image], 0);
  }

  private underPointer({ offsetX, offsetY }: MouseEvent): number | null {
    return this.overlay.imageAt(offsetX, offsetY);
  }

  private press(event: KeyboardEvent): void {
    const actions: Record<string, () => void> = {
      ArrowLeft: () => this.plot?.move(-STEP, 0),
      ArrowRight: () => this.plot?.move(STEP, 0),
      ArrowUp: () => this.plot?.move(0, STEP),
      ArrowDown: () => this.plot?.move(0, -STEP),
      "+": this.closer,
      "=": this.closer,
      "-": this.farther,
      "0": this.home,
      Enter: this.chooseView,
      Escape: () => this.lasso(false),
    };
    const action = actions[event.key];
    if (action === undefined || isBrowserShortcut(event) || event.target !== this.element) return;
    event.preventDefault();
    action();
  }
}

function pointsOf(report: Report): Points {
  const [x, y] = [report.x.map((each) => 2 * each - 1), report.y.map((each) => 2 * each - 1)];
  return { x, y, reach: { x: reachOf(x), y: reachOf(y) }, smallestTile: isCrisp(report) ? 30 : 40 };
}

/** Rotate a map that is higher than wide: its directions have no meaning. */
function laidOnItsSide(points: Points): Points {
  const { x, y, reach } = points;
  return reach.y > reach.x ? { ...points, x: y, y: x.map((each) => -each), reach: { x: reach.y, y: reach.x } } : points;
}

function reachOf(values: Float32Array): number {
  return values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
}

/** rgb(1, 2, 3) as #010203. */
function hex(colour: string): string {
  const parts = (colour.match(/\d+/g) ?? ["255", "255", "255"]).slice(0, 3);
  return `#${parts.map((part) => Number(part).toString(16).padStart(2, "0")).join("")}`;
}
