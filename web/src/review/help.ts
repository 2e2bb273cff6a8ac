import { el } from "../dom";
import { showDialog } from "./dialogs";

const GROUPS: [title: string, keys: [keys: string, what: string][]][] = [
  [
    "Choose images",
    [
      ["Space", "choose the image in focus, or deselect it"],
      ["Shift + arrows", "extend the selection"],
      ["Ctrl + A", "choose all of a list"],
      ["Escape", "deselect all"],
      ["V", "choose by plain clicks or taps"],
    ],
  ],
  [
    "Images, chosen or in focus",
    [
      ["F", "more like this: the most similar images anywhere"],
      ["M", "move to another cluster"],
      ["S", "split off as a new cluster, named if you like"],
      ["J", "mark as junk"],
      ["C, Y", "confirm: they are in the right cluster"],
      ["Y, N", "in an audit: the label is right, or wrong"],
      ["O", "in questions: move to the other cluster"],
    ],
  ],
  [
    "The cluster on the screen, or the card in focus",
    [
      ["R", "rename"],
      ["A", "accept the proposed name"],
      ["D", "describe"],
      ["G", "merge into another"],
      ["Shift + C", "confirm all its images"],
      ["Shift + J", "mark all its images as junk"],
    ],
  ],
  [
    "Everywhere",
    [
      ["U, Ctrl + Z", "undo"],
      ["Shift + U", "redo"],
      ["T", "the tree: coarser or finer clusters"],
      ["W", "review, worst first"],
      ["Q", "most informative images"],
      ["N, P", "next, previous cluster"],
      ["Enter", "open the item in focus"],
      ["?", "this list of keys"],
    ],
  ],
];
const POINTER = "With the mouse: click while holding Ctrl (⌘) to choose, Shift for all in between; on the map draw around images. On a touch screen, press Choose; then taps choose images.";

/** The sheet of keys. */
export function showHelp(): void {
  const close = el("button", { type: "button", class: "main" }, "Close");
  const dialog = el(
    "dialog",
    { class: "question help", "aria-label": "Keys" },
    el("h2", {}, "Keys"),
    el("p", { class: "quiet" }, POINTER),
    el(
      "div",
      { class: "sheet" },
      GROUPS.map(([title, keys]) =>
        el("section", {}, el("h3", {}, title), el("dl", {}, keys.flatMap(([key, what]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, what)]))),
      ),
    ),
    el("div", { class: "answers" }, close),
  );
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("keydown", (event) => event.key === "?" && dialog.close());
  showDialog(dialog);
}
