import { Pane, el, replace } from "../../dom";
import { count, images } from "../../format";
import { actionButton, notice } from "../actions";
import { type Plan, identity, post } from "../api";
import type { Screen } from "../main";
import type { Store } from "../store";
import { works } from "../works";

interface Form {
  form: string;
  name: string;
  why: string;
  folder: boolean; // it is written to a place; else it is a file to download
  split?: boolean;
}

const FORMS: Form[] = [
  { form: "folders", name: "Folders", why: "A folder for each cluster, with links to your images or copies of them.", folder: true, split: true },
  { form: "csv", name: "Table (CSV)", why: "A row for each image, for spreadsheets.", folder: false, split: true },
  { form: "json", name: "JSON", why: "The same rows, for programs.", folder: false, split: true },
  { form: "parquet", name: "Parquet", why: "The same rows, small and fast to read.", folder: false, split: true },
  { form: "coco", name: "COCO", why: "Image categories in COCO's format.", folder: false },
  { form: "xmp", name: "XMP", why: "Keywords for photo programs, in files that are copied next to the images.", folder: true },
  { form: "fiftyone", name: "FiftyOne", why: "A FiftyOne dataset.", folder: true },
  { form: "embedding-atlas", name: "Embedding Atlas", why: "The map and the labels for Embedding Atlas.", folder: false },
  { form: "model", name: "Model", why: "The network and the clusters, for propos and Python.", folder: true },
  { form: "onnx", name: "ONNX", why: "The network and the clusters, for other programs.", folder: false },
];

/** Export a run: choose a form, see what would be written, write it. */
export function exportScreen(store: Store, name: string): Screen {
  const [said, planned, files] = [notice(), el("div", { "aria-live": "polite" }), el("div")];
  const pane = new Pane(files);
  const place = el("input", { id: "place", type: "text", autocomplete: "off", spellcheck: false });
  const how = el("select", { id: "how" }, el("option", { value: "symlink" }, "links (no extra space; need the originals)"), el("option", { value: "copy" }, "copies"), el("option", { value: "hardlink" }, "hard links"));
  const split = el("input", { id: "split", type: "text", placeholder: "80/10/10", size: 10, autocomplete: "off" });
  const field = (label: string, input: HTMLElement, hint = ""): HTMLElement => el("p", { class: "field" }, el("label", { for: input.id }, label), input, hint === "" ? null : el("span", { class: "quiet" }, hint));
  const fields = { place: field("Write to", place, "a path that does not exist yet"), how: field("The images as", how), split: el("details", {}, el("summary", {}, "Split into train, val and test"), field("Shares", split, "in per cent; near duplicates stay together")) };
  const radios = FORMS.map(({ form }, at) => el("input", { type: "radio", name: "form", id: `form-${form}`, value: form, checked: at === 0 }));
  const chosen = (): Form => FORMS[radios.findIndex(({ checked }) => checked)] as Form;
  let id = identity();
  const asked = (): object => ({
    id,
    name,
    form: chosen().form,
    ...(chosen().folder ? { output: place.value } : {}),
    ...(chosen().form === "folders" ? { how: how.value } : {}),
    ...(chosen().split === true && split.value !== "" ? { split: split.value } : {}),
  });

  const plan = actionButton("Show what would be written", said, async () => {
    replace(planned, ...plannedText(await post<Plan>("api/plan", asked()), write, name));
  });
  const write = actionButton("Write", said, async () => {
    await post("api/export", asked());
    id = identity();
    replace(planned);
    said.textContent = "Started: see below.";
    await store.look();
  }, { class: "main" });

  function choose(): void {
    fields.place.hidden = !chosen().folder;
    fields.how.hidden = chosen().form !== "folders";
    fields.split.hidden = chosen().split !== true;
    replace(planned);
  }
  for (const input of [...radios, place, how, split]) input.addEventListener("input", choose);
  choose();
  const list = el("ul", { class: "forms" }, FORMS.map(({ name: title, why }, at) => el("li", {}, el("label", {}, radios[at] as HTMLElement, " ", el("strong", {}, title), " ", el("span", { class: "quiet" }, why)))));
  const content = el(
    "div",
    { class: "screen" },
    el("h1", {}, `Export ${name}`),
    el("p", {}, "With all corrections made so far. Your images stay where they are."),
    el("fieldset", {}, el("legend", {}, "As"), list),
    ...Object.values(fields),
    el("p", { class: "row" }, plan),
    said,
    planned,
    files,
    el("p", {}, el("a", { href: `#/run/${encodeURIComponent(name)}` }, `Back to ${name}`)),
  );
  plan.disabled = true; // until it is known where to
  let known = false;
  function update(): void {
    if (!known && store.state !== null) {
      const source = store.run(name)?.source;
      if (source) place.value = free(`${source}-sorted`, new Set(store.state.work.map(({ output }) => output)));
      known = true;
      plan.disabled = false;
    }
    const mine = (store.state?.work ?? []).filter((work) => work.run === name && work.kind === "export");
    pane.show(mine, () => works(mine));
  }
  return { title: `Export ${name}`, content, update };
}

/** A path that no earlier export was written to. */
function free(path: string, taken: ReadonlySet<string | null>): string {
  let [found, number] = [path, 1];
  while (taken.has(found)) found = `${path}-${++number}`;
  return found;
}

function plannedText({ output, count: number, files, left, clusters, unnamed }: Plan, write: HTMLElement, name: string): (HTMLElement | null)[] {
  return [
    el("p", {}, `${images(number)} would go to ${output.includes("/.studio/") ? "a file that you download" : output}${left > 0 ? `; ${images(left)} of junk are left out` : ""}.`),
    unnamed === 0 ? null : el("p", {}, `${unnamed === clusters ? "The" : `${count(unnamed)} of ${count(clusters)}`} clusters have no name yet, only a number: name them in `, el("a", { href: `run/${encodeURIComponent(name)}/` }, "Review"), " first, or write now."),
    ...(files.length === 0
      ? []
      : [
          el(
            "details",
            {},
            el("summary", {}, files.length < number ? `The first ${count(files.length)} files` : "The files"),
            el("ul", { class: "plan" }, files.map(([original, goes]) => el("li", {}, `${original} → ${goes}`))),
          ),
        ]),
    el("p", { class: "row" }, write),
  ];
}
