import { el, replace } from "../dom";
import type { Report } from "../report";
import { picture } from "../thumb";
import { fixed } from "../format";
import type { Plot, Points } from "./plot";

/** The image under the pointer. */
export function tooltip(report: Report, points: Points): { element: HTMLElement; show(plot: Plot, image: number | null): void } {
  const element = el("div", { class: "tooltip", role: "status", hidden: true });

  function show(plot: Plot, image: number | null): void {
    element.hidden = image === null;
    if (image === null) return;
    const cluster = report.clusterName(report.cluster[image] as number);
    const label = report.labels === null ? "" : ` · label ${report.labels.names[report.labels.of[image] ?? 0] ?? ""}`;
    replace(
      element,
      picture(report, image),
      el("strong", {}, report.nameOf(image)),
      el("span", {}, `${cluster}${label}`),
      el("span", { class: "quiet" }, `confidence ${fixed(report.confidence[image] ?? 0, 2)}`),
    );
    const [x, y] = plot.project(points.x[image] as number, points.y[image] as number);
    const box = (element.parentElement as HTMLElement).getBoundingClientRect();
    const left = x + 16 + element.offsetWidth > box.width ? x - 16 - element.offsetWidth : x + 16;
    const top = Math.min(Math.max(8, y - element.offsetHeight / 2), box.height - element.offsetHeight - 8);
    element.style.transform = `translate(${Math.max(8, left)}px, ${top}px)`;
  }

  return { element, show };
}
