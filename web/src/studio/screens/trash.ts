import { Pane, el } from "../../dom";
import { actionButton, notice } from "../actions";
import { post } from "../api";
import type { Screen } from "../main";
import type { Store } from "../store";

/** Deleted runs, to be restored. */
export function trashScreen(store: Store): Screen {
  const said = notice();
  const list = el("ul", { class: "plain" });
  const pane = new Pane(list);
  const content = el(
    "div",
    { class: "screen" },
    el("h1", {}, "Trash"),
    el("p", { class: "quiet" }, "Runs that you deleted. They take up space until you delete the folder .studio/trash in the folder of the runs."),
    said,
    list,
  );
  function entry({ entry, name }: { entry: string; name: string }): HTMLElement {
    const restore = actionButton("Restore", said, async () => {
      await post("api/restore", { name: entry });
      said.textContent = `${name} is back among the runs.`;
      await store.look();
    }, { "aria-label": `Restore ${name}` });
    return el("li", { class: "row" }, el("span", {}, name), restore);
  }
  function update(): void {
    const entries = store.state?.trash ?? [];
    pane.show(entries, () => (entries.length === 0 ? [el("li", { class: "quiet" }, "The trash is empty.")] : entries.map(entry)));
  }
  return { title: "Trash", content, update };
}
