import { el } from "./dom";
import { colourOf, shapeOf } from "./palette";

/** The mark of a cluster: a colour, and beyond ten clusters another shape. */
export function swatch(number: number): HTMLElement {
  const mark = el("span", { class: "swatch", "aria-hidden": "true" }, shapeOf(number));
  mark.style.color = colourOf(number);
  return mark;
}
