import "../style/base.css";
import "../style/cards.css";
import "../style/figures.css";
import "../style/dialogs.css";
import "../style/studio.css";
import { el, replace } from "../dom";
import { recoverFocus } from "./actions";
import { Store } from "./store";
import { exportScreen } from "./screens/export";
import { newScreen } from "./screens/new";
import { predictScreen } from "./screens/predict";
import { runScreen } from "./screens/run";
import { runsScreen } from "./screens/runs";
import { trashScreen } from "./screens/trash";

/** A screen of Studio; `update` is called when the state changed. */
export interface Screen {
  title: string;
  content: HTMLElement;
  update?: () => void;
}

const LINKS: [address: string, name: string][] = [
  ["", "Runs"],
  ["new", "New"],
  ["trash", "Trash"],
];

const root = document.getElementById("app") as HTMLElement;
const store = new Store();
const main = el("main", { id: "main", tabindex: -1 });
const links = LINKS.map(([address, name]) => el("a", { href: `#/${address}`, "data-first": address }, name));
const trouble = el("p", { class: "trouble", role: "alert", hidden: true });
replace(
  root,
  el("header", { class: "top" }, el("div", { class: "brand" }, el("strong", {}, "propos studio")), el("nav", { "aria-label": "Studio" }, links)),
  trouble,
  main,
);

let screen: Screen | null = null;
let address: string | null = null;

function screenOf([first, name, what]: (string | undefined)[]): Screen {
  if (first === "new") return newScreen(store);
  if (first === "trash") return trashScreen(store);
  if (first !== "run" || name === undefined) return runsScreen(store);
  if (what === "export") return exportScreen(store, name);
  return what === "predict" ? predictScreen(store, name) : runScreen(store, name);
}

function show(): void {
  if (location.hash === "#main" || location.hash === address) return;
  const moveFocus = address !== null;
  address = location.hash;
  const parts = address.replace(/^#\/?/, "").split("/").map(plain);
  screen = screenOf(parts);
  document.title = `${screen.title} · propos studio`;
  for (const link of links) {
    if (link.dataset["first"] === (parts[0] === "run" ? "" : parts[0])) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  replace(main, screen.content);
  window.scrollTo(0, 0);
  if (moveFocus) main.focus({ preventScroll: true });
  screen.update?.();
}

/** A part of the address as text; what is no text is taken as it is. */
function plain(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

store.listen(() => {
  trouble.hidden = store.trouble === null;
  trouble.textContent = store.trouble ?? "";
  const focused = main.contains(document.activeElement);
  screen?.update?.();
  if (focused) recoverFocus(null);
});
window.addEventListener("hashchange", show);
show();
store.start();
