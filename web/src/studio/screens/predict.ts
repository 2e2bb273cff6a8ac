import { Pane, el } from "../../dom";
import { notice } from "../actions";
import { identity, messageOf, post } from "../api";
import type { Screen } from "../main";
import { FolderPicker } from "../picker";
import type { Store } from "../store";
import { works } from "../works";

/** Assign the images of another folder to the clusters of a run. */
export function predictScreen(store: Store, name: string): Screen {
  const [said, files] = [notice(), el("div")];
  const pane = new Pane(files);
  const picker = new FolderPicker((path) => void predict(path));
  async function predict(path: string): Promise<void> {
    try {
      await post("api/predict", { id: identity(), name, source: path });
      said.textContent = "Started: the table appears below.";
      await store.look();
    } catch (error) {
      said.textContent = messageOf(error);
    }
  }
  const content = el(
    "div",
    { class: "screen" },
    el("h1", {}, `Predict with ${name}`),
    el("p", {}, "Choose a folder: each of its images is assigned to a cluster of this run."),
    picker.element,
    said,
    files,
    el("p", {}, el("a", { href: `#/run/${encodeURIComponent(name)}` }, `Back to ${name}`)),
  );
  function update(): void {
    const mine = (store.state?.work ?? []).filter((work) => work.run === name && work.kind === "predict");
    pane.show(mine, () => works(mine));
  }
  return { title: `Predict with ${name}`, content, update };
}
