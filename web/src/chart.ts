import { el, svg } from "./dom";
import { colourOf } from "./palette";
import { count, fixed, displayName } from "./format";

const WIDTH = 460;
const HEIGHT = 220;
const LEFT = 48;
const RIGHT = 12;
const TOP = 18;
const BOTTOM = 28;
const DASHES = ["", "6 3", "2 3", "8 3 2 3", "1 4"];

type Curve = readonly (number | null)[];
type ToPixel = (value: number) => number;

export interface Drawing {
  title: string;
  caption: string;
  xLabel: string;
  xs: readonly number[];
  curves: Record<string, Curve>;
  mark?: number; // an x to point out
}

/** Curves over a shared axis, distinguished by colour and dashes; the legend has their values at the mark, else the last ones. */
export function lineChart(drawing: Drawing): HTMLElement {
  const { xs, curves } = drawing;
  const values = Object.values(curves).flat().filter((value) => value !== null);
  const scale = scaleOf(Math.min(...values), Math.max(...values));
  const { low, high } = scale;
  const first = xs[0] ?? 0;
  const span = (xs[xs.length - 1] ?? 1) - first || 1;
  const x = (value: number): number => LEFT + ((WIDTH - LEFT - RIGHT) * (value - first)) / span;
  const y = (value: number): number => TOP + ((HEIGHT - TOP - BOTTOM) * (high - value)) / (high - low);
  const names = Object.keys(curves);
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": accessibleSummary(drawing) },
    axes(scale, first, first + span, drawing.xLabel, x, y),
    drawing.mark === undefined ? [] : marked(drawing.mark, x(drawing.mark)),
    names.map((name, place) => line(xs, curves[name] ?? [], x, y, place)),
  );
  return el(
    "figure",
    { class: "chart" },
    el("figcaption", {}, el("h2", {}, drawing.title), el("p", { class: "quiet" }, drawing.caption)),
    picture,
    el("ul", { class: "legend" }, names.map((name, place) => legendEntry(name, displayedValue(drawing, curves[name] ?? []), place))),
  );
}

function marked(value: number, at: number): SVGElement[] {
  return [
    svg("line", { class: "mark", x1: at, x2: at, y1: TOP, y2: HEIGHT - BOTTOM }),
    svg("text", { class: "tick", x: at, y: TOP - 4, "text-anchor": "middle" }, value),
  ];
}

function line(xs: readonly number[], curve: Curve, x: ToPixel, y: ToPixel, place: number): SVGElement {
  let path = "";
  let pen = false;
  curve.forEach((value, at) => {
    if (value !== null) path += `${pen ? "L" : "M"}${x(xs[at] ?? 0).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = value !== null;
  });
  const drawn = svg("path", { d: path, class: "curve", "stroke-dasharray": DASHES[place % DASHES.length] ?? "" });
  drawn.style.stroke = strokeOf(place);
  return drawn;
}

/** The value of a curve in the legend. */
function displayedValue({ xs, mark }: Drawing, curve: Curve): number | undefined {
  if (mark !== undefined) return curve[xs.indexOf(mark)] ?? undefined;
  return [...curve].reverse().find((value) => value !== null) ?? undefined;
}

function legendEntry(name: string, value: number | undefined, place: number): HTMLElement {
  const key = svg("svg", { viewBox: "0 0 24 8", class: "key", "aria-hidden": "true" });
  const sample = svg("path", { d: "M0 4H24", class: "curve", "stroke-dasharray": DASHES[place % DASHES.length] ?? "" });
  sample.style.stroke = strokeOf(place);
  key.append(sample);
  return el("li", {}, key, displayName(name), value === undefined ? null : el("strong", {}, short(value)));
}

/** The first curve takes the accent colour. */
const strokeOf = (place: number): string => (place === 0 ? "var(--accent)" : colourOf(place - 1));

function axes({ low, high, step }: Scale, first: number, last: number, label: string, x: ToPixel, y: ToPixel): SVGElement[] {
  const parts: SVGElement[] = [];
  for (let value = low; value <= high + step / 2; value += step) {
    parts.push(svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }));
    parts.push(svg("text", { class: "tick", x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, tick(value, step)));
  }
  parts.push(svg("text", { class: "tick", x: x(first), y: HEIGHT - 8 }, short(first)));
  parts.push(svg("text", { class: "tick", x: x((first + last) / 2), y: HEIGHT - 8, "text-anchor": "middle" }, label));
  parts.push(svg("text", { class: "tick", x: x(last), y: HEIGHT - 8, "text-anchor": "end" }, short(last)));
  return parts;
}

interface Scale {
  low: number;
  high: number;
  step: number;
}

/** Widen a range to whole steps of 1, 2 or 5 times a power of ten; a range not far above 0 begins there. */
function scaleOf(low: number, high: number): Scale {
  if (low >= 0 && low < high / 2) low = 0;
  const rough = (high - low || Math.abs(high) || 1) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((each) => each * power >= rough) as number);
  const bottom = Math.floor(low / step) * step;
  return { low: bottom, high: Math.max(Math.ceil(high / step) * step, bottom + step), step };
}

function tick(value: number, step: number): string {
  return step >= 1 ? count(Math.round(value)) : fixed(value, Math.ceil(-Math.log10(step)));
}

/** A number with as few digits as possible. */
function short(value: number): string {
  const size = Math.abs(value);
  if (size >= 100 || Number.isInteger(value)) return count(value);
  if (size >= 10) return fixed(value, 1);
  return fixed(value, size < 0.1 ? 3 : 2);
}

function accessibleSummary(drawing: Drawing): string {
  const { title, curves, xLabel, mark } = drawing;
  const ends = Object.entries(curves).map(([name, curve]) => {
    const known = curve.filter((value) => value !== null);
    const at = mark === undefined ? "" : `, ${short(displayedValue(drawing, curve) ?? 0)} at ${mark}`;
    return `${displayName(name)} from ${short(known[0] ?? 0)} to ${short(known[known.length - 1] ?? 0)}${at}`;
  });
  return `${title}. Over ${xLabel}: ${ends.join(", ")}`;
}
