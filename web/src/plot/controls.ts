import { el } from "../dom";
import type { By } from "./colouring";
import type { MapView } from "./view";

/** The tools over the map. */
export function controls(view: MapView, ways: By[], pictures: boolean, few: boolean, recoloured: () => void): HTMLElement {
  const way = choice("colour", ways, (value) => {
    view.colourBy(value as By);
    recoloured();
  });
  const show = choice("show", ["dots", "thumbnails"], (value) => view.thumbnails(value === "thumbnails"));
  if (few) {
    show.value = "thumbnails";
    view.thumbnails(true);
  }
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
  const button = el("button", { type: "button", id: "lasso", "aria-pressed": "false" }, "Draw around images");
  view.lassoChanged = (on) => button.setAttribute("aria-pressed", String(on));
  button.addEventListener("click", () => view.lasso(button.getAttribute("aria-pressed") !== "true"));
  button.addEventListener("keydown", (event) => event.key === "Escape" && view.lasso(false));
  return button;
}
