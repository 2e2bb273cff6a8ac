import { arrange, el } from "../dom";
import type { Cluster } from "../payload";
import type { Report } from "../report";
import { swatch } from "../swatch";
import { picture } from "../thumb";
import { count, images } from "../format";
import { JUNK } from "./replay";

const MOST_SHOWN = 50; // clusters that are listed at once
export const NEW = -2; // in the place of a cluster's id: one that is to be made

/** Show a dialog that is removed when it is closed. */
export function showDialog(dialog: HTMLDialogElement): void {
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
  dialog.scrollTop = 0; // the button in focus may be at its end
}

/** Characters that break a line or change the direction of writing: `propos.runs.edits` refuses them in names. */
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/u;

interface Question {
  title: string;
  words: string;
  value: string;
  lines: 1 | 5;
  most: number;
}

/** Ask for a text; nothing written gives null. */
export function askText({ title, words, value, lines, most }: Question, answered: (text: string | null) => void): void {
  const attributes = { id: "answer", "aria-describedby": "why", autocomplete: "off", spellcheck: false };
  const field = lines === 1 ? el("input", { ...attributes, type: "text" }) : el("textarea", { ...attributes, rows: lines });
  const why = el("p", { id: "why", class: "quiet", role: "status" }, words);
  const form = el(
    "form",
    {},
    el("label", { for: "answer" }, el("h2", {}, title)),
    field,
    why,
    el(
      "div",
      { class: "answers" },
      el("button", { type: "button", click: () => dialog.close() }, "Cancel"),
      el("button", { type: "submit", class: "main" }, "Save"),
    ),
  );
  const dialog = el("dialog", { class: "question", "aria-label": title }, form);
  field.value = value;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = field.value.trim();
    // Python counts letters, not halves of pairs.
    const wrong = [...text].length > most ? `At most ${most} characters.` : lines === 1 && UNSEEN.test(text) ? "One line of visible characters." : null;
    if (wrong !== null) return void (why.textContent = wrong);
    dialog.close();
    answered(text === "" ? null : text);
  });
  field.addEventListener("keydown", (event) => {
    const { key, ctrlKey, metaKey } = event as KeyboardEvent;
    if (lines > 1 && key === "Enter" && (ctrlKey || metaKey)) form.requestSubmit();
  });
  showDialog(dialog);
  field.select();
}

interface Agreement {
  title: string;
  words: string;
  yes: string; // what the person agrees to, with its number
}

/** Ask before something is done to many images at once; the focus is on Cancel, so that a held key does nothing. */
export function askAgreement({ title, words, yes }: Agreement, agreed: () => void): void {
  const agree = el("button", { type: "button", class: "main" }, yes);
  const cancel = el("button", { type: "button" }, "Cancel");
  const dialog = el("dialog", { class: "question", "aria-label": title }, el("h2", {}, title), el("p", {}, words), el("div", { class: "answers" }, cancel, agree));
  cancel.addEventListener("click", () => dialog.close());
  agree.addEventListener("click", () => {
    dialog.close();
    agreed();
  });
  showDialog(dialog);
}

interface Choice {
  title: string;
  words: string;
  candidates: Cluster[]; // the likeliest first
  fresh: boolean; // whether a new cluster may be chosen
}

/** Choose a cluster: letters narrow the list, arrows move in it, Enter takes one. */
export function chooseCluster(report: Report, { title, words, candidates, fresh }: Choice, chosen: (id: number) => void): void {
  const search = el("input", {
    type: "search",
    id: "wanted",
    role: "combobox",
    "aria-expanded": "true",
    "aria-controls": "candidates",
    placeholder: "name or number",
    autocomplete: "off",
  });
  const list = el("ul", { id: "candidates", role: "listbox", "aria-label": title });
  const more = el("p", { class: "quiet" });
  const dialog = el(
    "dialog",
    { class: "question chooser", "aria-label": title },
    el("label", { for: "wanted" }, el("h2", {}, title)),
    el("p", { class: "quiet" }, words),
    search,
    list,
    more,
    el("div", { class: "answers" }, el("button", { type: "button", click: () => dialog.close() }, "Cancel")),
  );
  let shown: number[] = [];
  let at = 0;

  function take(place: number): void {
    const id = shown[place];
    if (id === undefined) return;
    dialog.close();
    chosen(id);
  }

  function mark(): void {
    [...list.children].forEach((item, place) => item.setAttribute("aria-selected", String(place === at)));
    const marked = list.children[at];
    if (marked === undefined) return search.removeAttribute("aria-activedescendant");
    search.setAttribute("aria-activedescendant", marked.id);
    marked.scrollIntoView({ block: "nearest" });
  }

  function update(): void {
    const wanted = search.value.trim().toLowerCase();
    const found = candidates.filter(({ id }) => `${report.clusterName(id)} ${proposed(report, id)} ${id}`.toLowerCase().includes(wanted));
    // A number means the cluster of that number before those that only contain it.
    found.sort((a, b) => Number(String(b.id) === wanted) - Number(String(a.id) === wanted));
    const rest = found.length - MOST_SHOWN;
    shown = [...found.slice(0, MOST_SHOWN).map(({ id }) => id), ...(fresh && wanted === "" ? [NEW] : [])];
    arrange(list, shown.map((id, place) => entry(report, id, place, () => take(place))));
    more.hidden = rest <= 0 && found.length > 0;
    more.textContent = found.length === 0 ? "no cluster with this name or number" : `and ${count(rest)} more: type to narrow the list`;
    at = 0;
    mark();
  }

  search.addEventListener("input", update);
  search.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined && event.key !== "Enter") return;
    event.preventDefault();
    if (step === undefined) return take(at);
    at = Math.min(shown.length - 1, Math.max(0, at + step));
    mark();
  });
  showDialog(dialog);
  update();
  search.focus();
}

function entry(report: Report, id: number, place: number, take: () => void): HTMLElement {
  const attributes = { role: "option", id: `candidate-${place}`, click: take };
  if (id === NEW) return el("li", { ...attributes, class: "fresh" }, el("span", {}, "+ A new cluster"));
  const cluster = report.clusterOf(id);
  return el(
    "li",
    attributes,
    el("span", { class: "mosaic strip" }, (cluster?.typical ?? []).slice(0, 4).map((image) => picture(report, image))),
    el("span", {}, swatch(id), report.clusterName(id), " ", el("span", { class: "quiet" }, `${proposed(report, id)} ${images(cluster?.size ?? 0)}`.trim())),
  );
}

/** The name that is proposed for a cluster, as the overview shows it. */
function proposed(report: Report, id: number): string {
  const open = report.review.proposedNames.get(id);
  return open === undefined ? "" : `${open.name}?`;
}

/** Clusters except some, the nearest to one first. */
export function candidates(report: Report, near: number | null, without: ReadonlySet<number>): Cluster[] {
  const order = new Map((near === null ? [] : (report.firstNearest.get(near) ?? [])).map(([id], place) => [id, place]));
  const rank = ({ id }: Cluster): number => order.get(id) ?? Number.MAX_SAFE_INTEGER;
  return report.clusters.filter(({ id }) => id !== JUNK && !without.has(id)).sort((a, b) => rank(a) - rank(b));
}
