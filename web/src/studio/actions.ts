import { el } from "../dom";
import { messageOf } from "./api";

/** A place that says how the last action went. */
export function notice(): HTMLElement {
  return el("p", { class: "notice", role: "status" });
}

/** A button that does something and says so if it failed; pressed twice, it does it once. */
export function actionButton(name: string, said: HTMLElement, act: () => Promise<unknown>, attributes: Record<string, string> = {}): HTMLButtonElement {
  const button = el("button", { type: "button", ...attributes }, name);
  button.addEventListener("click", () => void perform(button, said, act));
  return button;
}

export async function perform(button: HTMLButtonElement, said: HTMLElement, act: () => Promise<unknown>): Promise<void> {
  const focused = document.activeElement === button; // which a disabled button loses
  button.disabled = true;
  said.textContent = "";
  said.classList.remove("warn");
  try {
    await act();
  } catch (error) {
    said.textContent = messageOf(error);
    said.classList.add("warn");
  }
  button.disabled = false;
  if (focused) recoverFocus(button);
}

/** Give the focus, if it is nowhere, to an element, or to the screen if that is gone: Tab continues from there. */
export function recoverFocus(element: HTMLElement | null): void {
  if (document.activeElement !== document.body) return;
  (element?.isConnected ? element : document.getElementById("main"))?.focus({ preventScroll: true });
}
