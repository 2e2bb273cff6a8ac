import { el } from "../dom";
import type { Colouring } from "./colouring";

/** What the colours mean; pressing a key leaves only its dots coloured. */
export function legend({ names, colours, shapes }: Colouring, highlight: (code: number | null) => void): HTMLElement[] {
  const buttons = names.map((name, code) => {
    const mark = el("span", { class: "swatch", "aria-hidden": "true" }, shapes[code] as string);
    mark.style.color = colours[code] as string;
    return el("button", { type: "button", "aria-pressed": "false" }, mark, name);
  });
  buttons.forEach((button, code) =>
    button.addEventListener("click", () => {
      const press = button.getAttribute("aria-pressed") !== "true";
      for (const other of buttons) other.setAttribute("aria-pressed", String(press && other === button));
      highlight(press ? code : null);
    }),
  );
  return buttons.map((button) => el("li", {}, button));
}
