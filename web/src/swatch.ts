import { el } from "./dom";
import { colourOf, shapeOf } from "./palette";

/** The mark of a cluster: a colour, and beyond ten clusters another shape. */
export function swatch(id: number): HTMLElement {
  const mark = el("span", { class: "swatch", "aria-hidden": "true" }, shapeOf(id));
  mark.style.color = colourOf(id);
  return mark;
}
