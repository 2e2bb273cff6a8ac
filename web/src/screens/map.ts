import { el, replace } from "../dom";
import { gallery } from "../gallery";
import { canvasPlot } from "../plot/canvas";
import { type By, colouring, only } from "../plot/colouring";
import { Overlay } from "../plot/overlay";
import type { Listener, Plot, Points } from "../plot/plot";
import { tooltip } from "../plot/tooltip";
import { webglPlot } from "../plot/webgl";
import { shapeOf } from "../palette";
import { type Report, imagesWhere } from "../report";
import type { Screen } from "../shell";
import { images } from "../words";

const KEYS = "Arrow keys move the map, plus and minus zoom, 0 shows all, Enter lists what is in view.";

/** All images by likeness: hover to see one, draw round some to list them. */
export function mapScreen(report: Report): Screen {
  const points: Points = { x: report.x.map((x) => 2 * x - 1), y: report.y.map((y) => 2 * y - 1) };
  const canvas = el("canvas");
  const hint = tooltip(report, points);
  let plot: Plot | null = null;
  const overlay = new Overlay(report, points, () => plot);
  const stage = el("div", { class: "map", tabindex: 0, role: "group", "aria-label": `Map of ${images(report.count)}. ${KEYS}` }, canvas, overlay.element, hint.element);
  const chosen = el("section", { class: "chosen", "aria-live": "polite" }, el("p", { class: "quiet" }, "Choose images on the map to list them here."));
  const legend = el("ul", { class: "keys" });
  let by: By = "cluster";
  let alone: number | null = null;

  const listener: Listener = {
    hover: (image) => plot !== null && hint.show(plot, image),
    select: (found) => list(found),
    view: () => overlay.update(),
  };

  function paint(): void {
    const { codes, colours } = colours_();
    plot?.paint(codes, only(colours, alone));
  }

  let cached: { by: By; value: ReturnType<typeof colouring> } | null = null;
  function colours_(): ReturnType<typeof colouring> {
    if (cached?.by !== by) cached = { by, value: colouring(report, by) };
    return cached.value;
  }

  function list(found: number[]): void {
    const sorted = [...found].sort((a, b) => (report.distance[a] ?? 0) - (report.distance[b] ?? 0));
    replace(chosen, el("h2", {}, `${images(found.length)} chosen`), gallery(report, sorted, "Chosen images"));
  }

  function listView(): void {
    const { clientWidth: width, clientHeight: height } = stage;
    const inView = imagesWhere(report, (image) => {
      const [x, y] = (plot as Plot).project(points.x[image] as number, points.y[image] as number);
      return x >= 0 && y >= 0 && x <= width && y <= height;
    });
    list(inView);
  }

  function drawLegend(): void {
    const { colours, names } = colours_();
    replace(legend, ...names.map((name, code) => key(name, colours[code] as string, code)));
  }

  function key(name: string, colour: string, code: number): HTMLElement {
    const mark = el("span", { class: "swatch", "aria-hidden": "true" }, by === "confidence" ? "■" : shapeOf(code));
    mark.style.color = colour;
    const button = el("button", { class: "key", type: "button", "aria-pressed": "false" }, mark, name);
    button.addEventListener("click", () => {
      alone = alone === code ? null : code;
      for (const other of legend.querySelectorAll("button")) other.setAttribute("aria-pressed", String(other === button && alone !== null));
      paint();
    });
    return el("li", {}, button);
  }

  function colourBy(value: By): void {
    [by, alone] = [value, null];
    drawLegend();
    paint();
  }

  const actions: Record<string, () => void> = {
    ArrowLeft: () => plot?.move(-0.2, 0),
    ArrowRight: () => plot?.move(0.2, 0),
    ArrowUp: () => plot?.move(0, 0.2),
    ArrowDown: () => plot?.move(0, -0.2),
    "+": () => plot?.zoom(1.4),
    "=": () => plot?.zoom(1.4),
    "-": () => plot?.zoom(1 / 1.4),
    "0": () => plot?.home(),
    Enter: listView,
  };
  stage.addEventListener("keydown", (event) => {
    const action = actions[event.key];
    if (action === undefined) return;
    event.preventDefault();
    action();
  });

  const lasso = el("button", { type: "button", "aria-pressed": "false", id: "lasso" }, "Draw round images");
  lasso.addEventListener("click", () => {
    const on = lasso.getAttribute("aria-pressed") !== "true";
    lasso.setAttribute("aria-pressed", String(on));
    stage.classList.toggle("lasso", on);
    plot?.lasso(on);
  });
  const ways: By[] = report.labels === null ? ["cluster", "confidence"] : ["cluster", "label", "confidence"];
  const way = el("select", { id: "colour" }, ways.map((value) => el("option", { value }, value)));
  way.addEventListener("change", () => colourBy(way.value as By));
  const show = el("select", { id: "show" }, ["dots", "thumbnails"].map((value) => el("option", { value }, value)));
  show.addEventListener("change", () => {
    overlay.thumbnails = show.value === "thumbnails";
    overlay.update();
  });
  const button = (words: string, label: string, action: () => void): HTMLElement => el("button", { type: "button", "aria-label": label, click: action }, words);
  const content = el(
    "div",
    { class: "screen wide" },
    el("h1", {}, "Map"),
    el("p", { class: "quiet" }, "Images that the network finds alike lie close together. Distances between far groups mean little."),
    el(
      "div",
      { class: "tools" },
      el("label", { for: "colour" }, "Colour by ", way),
      report.sheets === null ? null : el("label", { for: "show" }, "Show ", show),
      lasso,
      button("List what is in view", "List what is in view", listView),
      el("span", { class: "zoom" }, button("−", "Zoom out", () => plot?.zoom(1 / 1.4)), button("+", "Zoom in", () => plot?.zoom(1.4)), button("All", "Show all", () => plot?.home())),
    ),
    stage,
    legend,
    chosen,
  );
  const resized = new ResizeObserver(() => plot?.resize());

  function shown(): void {
    const background = getComputedStyle(stage).backgroundColor;
    plot = webglPlot(canvas, points, listener, hex(background)) ?? canvasPlot(canvas, points, listener);
    stage.dataset["plot"] = plot.kind;
    colourBy("cluster");
    resized.observe(stage);
  }

  function left(): void {
    resized.disconnect();
    plot?.destroy();
    plot = null;
  }

  return { title: "Map", content, shown, left };
}

/** rgb(1, 2, 3) as #010203. */
function hex(colour: string): string {
  const parts = (colour.match(/\d+/g) ?? ["255", "255", "255"]).slice(0, 3);
  return `#${parts.map((part) => Number(part).toString(16).padStart(2, "0")).join("")}`;
}
