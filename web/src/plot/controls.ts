import { el } from "../dom";
import type { By } from "./colouring";
import type { MapView } from "./view";

/** The tools over the map. */
export function controls(view: MapView, ways: By[], pictures: boolean, recoloured: () => void): HTMLElement {
  const way = choice("colour", ways, (value) => {
    view.colourBy(value as By);
    recoloured();
  });
  const show = choice("show", ["dots", "thumbnails"], (value) => view.thumbnails(value === "thumbnails"));
  return el(
    "div",
    { class: "tools" },
    el("label", { for: "colour" }, "Colour by ", way),
    pictures && el("label", { for: "show" }, "Show ", show),
    lassoButton(view),
    el("button", { type: "button", click: view.chooseView }, "List what is in view"),
    el(
      "span",
      { class: "zoom" },
      el("button", { type: "button", "aria-label": "Zoom out", click: view.farther }, "−"),
      el("button", { type: "button", "aria-label": "Zoom in", click: view.closer }, "+"),
      el("button", { type: "button", "aria-label": "Show all", click: view.home }, "All"),
    ),
  );
}

function choice(id: string, values: string[], changed: (value: string) => void): HTMLSelectElement {
  const select = el("select", { id }, values.map((value) => el("option", { value }, value)));
  select.addEventListener("change", () => changed(select.value));
  return select;
}

function lassoButton(view: MapView): HTMLElement {
  const button = el("button", { type: "button", id: "lasso", "aria-pressed": "false" }, "Draw round images");
  button.addEventListener("click", () => {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(on));
    view.lasso(on);
  });
  return button;
}
