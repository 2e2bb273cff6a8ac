import { el, replace } from "../../dom";
import { count, counted, images } from "../../format";
import { actionButton, notice } from "../actions";
import { type Inspection, identity, messageOf, post } from "../api";
import type { Screen } from "../main";
import { FolderPicker } from "../picker";
import type { Store } from "../store";
import { duration } from "../texts";

const SHOWN = 5;

/** Choose a folder, see what is in it, and start. */
export function newScreen(store: Store): Screen {
  const [found, status] = [el("section", { class: "found" }), el("p", { class: "unseen", role: "status" })];
  let chosen = "";
  const picker = new FolderPicker((path) => void inspect(path));
  const content = el("div", { class: "screen" }, el("h1", {}, "New"), el("p", {}, "1. Choose the folder with your images. They are only read, never changed."), el("p", { class: "quiet" }, "Type its path, choose it in the list, or drop it here."), picker.element, status, found);

  async function inspect(path: string): Promise<void> {
    chosen = path;
    replace(found, el("h2", {}, "2. Inspecting the folder …"), el("progress", { "aria-label": "Inspecting the folder" }));
    status.textContent = "Inspecting the folder";
    found.scrollIntoView({ block: "nearest" });
    try {
      const inspection = await post<Inspection>("api/inspect", { source: path });
      if (chosen !== path) return;
      replace(found, ...findings(inspection), ...start(path, inspection));
      status.textContent = `${images(inspection.images)} found. Choose the number of clusters and start.`;
    } catch (error) {
      if (chosen === path) replace(found, el("h2", {}, "2. This folder cannot be used"), el("p", { class: "warn", role: "alert" }, messageOf(error)));
    }
    found.scrollIntoView({ block: "nearest" });
  }

  function start(path: string, { seconds, reasons }: Inspection): HTMLElement[] {
    const said = notice();
    const number = el("input", { id: "number", type: "number", min: 2, max: 1000, value: 10, "aria-label": "Number of clusters" });
    const option = (value: string, name: string, checked: boolean): HTMLInputElement => el("input", { type: "radio", name: "clusters", id: value, value, checked, "aria-label": name });
    const [find, known] = [option("find", "Find out", true), option("known", "I know it", false)];
    number.addEventListener("input", () => (known.checked = true));
    const id = identity(); // of this choice: sent twice, it starts once
    const button = actionButton("Start", said, async () => {
      const { run } = await post<{ run: string }>("api/start", { id, source: path, ...(known.checked ? { clusters: number.value } : {}) });
      await store.look();
      location.hash = `#/run/${encodeURIComponent(run)}`;
    }, { class: "main" });
    return [
      el("h2", { class: "next" }, "3. How many clusters?"),
      el("fieldset", { class: "choices" }, el("legend", { class: "unseen" }, "Number of clusters"), el("label", {}, find, " Find out"), el("label", {}, known, " I know it:"), number),
      el("p", { class: "quiet" }, `Too many is better than too few: merging two clusters takes one key. ${reasons["clusters"] ?? ""}`),
      el("p", { class: "row" }, button, el("span", {}, `takes about ${duration(seconds)}, and some seconds to begin and to write the page`)),
      said,
    ];
  }
  return { title: "New", content };
}

/** What was found in the folder, in words. */
function findings(found: Inspection): HTMLElement[] {
  const { counts, skipped } = found;
  const facts: [string, string][] = [
    ["Images", `${images(found.images)}, ${found.channels === 1 ? "greyscale" : "colour"}`],
    ["Formats", Object.entries(found.formats).map(([kind, number]) => `${count(number)} ${kind}`).join(", ")],
    ["Sizes", Object.entries(found.sizes).slice(0, SHOWN).map(([size, number]) => `${count(number)} of ${size}`).join(", ") + (counts.sizes > SHOWN ? " …" : "")],
    ["Copies", counts.duplicates === 0 ? "" : `${counted(counts.duplicates, "group")} of files with the same bytes`],
    ["Very small", counts.tiny === 0 ? "" : images(counts.tiny)],
    ["What will be done", found.epochs === null ? "A network pretrained on photographs computes features of each image; images with similar features form a cluster." : `A network learns from these images alone, for ${counted(found.epochs, "epoch")}.`],
    ...found.notes.map((note): [string, string] => ["Note", note]),
  ];
  const unreadable = Object.entries(skipped);
  return [
    el("h2", {}, "2. What is in it"),
    el("dl", { class: "facts" }, facts.filter(([, text]) => text !== "").flatMap(([name, text]) => [el("dt", {}, name), el("dd", {}, text)])),
    ...(unreadable.length === 0
      ? []
      : [
          el(
            "details",
            {},
            el("summary", {}, `${counted(counts.skipped, "file")} that cannot be read will be left out`),
            el("ul", { class: "plan" }, unreadable.map(([name, reason]) => el("li", {}, `${name}: ${reason}`))),
          ),
        ]),
    el("details", {}, el("summary", {}, "Why it is done this way"), el("ul", { class: "plan" }, Object.values(found.reasons).map((reason) => el("li", {}, reason)))),
  ];
}
