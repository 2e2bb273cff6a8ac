import { lineChart } from "../chart";
import { el } from "../dom";
import { colourOf } from "../palette";
import type { Moment, Report } from "../report";
import type { Screen } from "../shell";

const SIDE = 320;

/** Curves of training, and the embeddings at kept epochs. */
export function trainingScreen(report: Report): Screen {
  const charts = report.charts.map((chart) => lineChart({ ...chart, xLabel: "epoch", xs: report.epochs }));
  const content = el(
    "div",
    { class: "screen" },
    el("h1", {}, "Training"),
    charts.length === 0 ? el("p", { class: "quiet" }, "The run has no history.") : el("div", { class: "charts" }, charts),
    report.moments.length === 0 ? null : moments(report),
  );
  return { title: () => "Training", content, corrected: () => true };
}

function moments(report: Report): HTMLElement {
  return el(
    "section",
    {},
    el("h2", {}, "Embeddings during training"),
    el("p", { class: "quiet" }, "Each laid out separately, coloured by the final clusters."),
    el("div", { class: "moments" }, report.moments.map((moment) => momentFigure(report, moment))),
  );
}

function momentFigure(report: Report, moment: Moment): HTMLElement {
  const canvas = el("canvas", { width: SIDE, height: SIDE, role: "img", "aria-label": `Embeddings after epoch ${moment.epoch}` });
  const context = canvas.getContext("2d");
  for (let at = 0; context !== null && at < moment.x.length; at++) {
    context.fillStyle = colourOf(report.cluster[moment.images[at] as number] as number);
    context.fillRect(6 + (SIDE - 14) * (moment.x[at] ?? 0), 6 + (SIDE - 14) * (1 - (moment.y[at] ?? 0)), 2.5, 2.5);
  }
  return el("figure", {}, canvas, el("figcaption", { class: "quiet" }, `after epoch ${moment.epoch}`));
}
