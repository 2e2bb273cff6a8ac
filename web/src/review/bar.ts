import { el, replace } from "../dom";
import { saveAs, showExport } from "../export";
import type { Report } from "../report";
import { parseRoute } from "../route";
import { count, images } from "../format";
import type { Actions } from "./actions";
import { showDialog } from "./dialogs";
import { asLines } from "./edits";
import { showHelp } from "./help";
import { reviewedCount, reviewedText } from "./texts";

const SAID = 6_000; // milliseconds for which what was done is shown

export interface Bar {
  element: HTMLElement;
  /** Show what was done for a while, with a way to undo it. */
  say(words: string, undo?: boolean): void;
  update(): void;
}

/** The bar below every screen: the selection and its actions, the progress of the review, and where edits are saved. */
export function reviewBar(report: Report, actions: () => Actions): Bar {
  const { review, selection } = report;
  const said = el("p", { class: "said", role: "status" });
  const back = el("button", { type: "button", hidden: true, title: "Undo (U)", click: () => actions().undo() }, "Undo");
  const toast = el("div", { class: "toast" }, said, back);
  const button = (words: string, key: string, click: () => void): HTMLButtonElement =>
    el("button", { type: "button", title: `${words} (${key})`, click }, words);
  const chosen = (): number[] => [...selection.images];
  const choosing = el("button", { type: "button", title: "Choose images by plain clicks or taps (V)", click: () => selection.choose(!selection.choosing) }, "Choose");
  const undo = button("Undo", "U", () => actions().undo());
  const redo = button("Redo", "Shift + U", () => actions().redo());
  const number = el("strong", { class: "chosen-count" });
  const other = button("To the other", "O", () => actions().other(chosen()));
  const doing = el(
    "div",
    { class: "doing", role: "group", "aria-label": "With the chosen images" },
    number,
    button("More like this", "F", () => actions().like(chosen())),
    button("Move", "M", () => actions().move(chosen())),
    button("Split off", "S", () => actions().split(chosen())),
    button("Junk", "J", () => actions().junk(chosen())),
    button("Confirm", "C", () => actions().confirm(chosen())),
    other,
    button("Clear", "Escape", () => selection.clear()),
  );
  const meter = el("span", { class: "meter", "aria-hidden": "true" }, el("span"));
  const seen = el("a", { class: "seen quiet", href: "#/review", title: "Review, worst first (W)" });
  const where = el("div", { class: "where" });
  const exporting = el("button", { type: "button", class: "export", title: "Export the labels", click: () => showExport(report) }, "Export");
  const help = el("button", { type: "button", "aria-label": "Keys", title: "Keys (?)", click: showHelp }, "?");
  const element = el(
    "footer",
    { class: "review", "aria-label": "Review" },
    toast,
    doing,
    el("div", { class: "always" }, choosing, undo, redo, el("span", { class: "far" }, meter, seen), where, exporting, help),
  );
  window.addEventListener("hashchange", update);
  let timer = 0;

  function update(): void {
    const { size } = selection.images;
    doing.hidden = size === 0;
    number.textContent = `${images(size)} chosen`;
    // Other screens do not show which cluster the other one is.
    other.hidden = parseRoute(location.hash).screen !== "questions" || !chosen().some((image) => report.alternativeOf(image) !== null);
    choosing.setAttribute("aria-pressed", String(selection.choosing));
    const { undo: canUndo, redo: canRedo } = review.can;
    [undo.disabled, redo.disabled] = [!canUndo, !canRedo];
    const { seen: done, all } = reviewedCount(report);
    seen.textContent = reviewedText(done, all);
    (meter.firstChild as HTMLElement).style.width = `${all === 0 ? 0 : (100 * done) / all}%`;
    replace(where, ...kept(report));
  }

  function say(words: string, undo = false): void {
    said.textContent = words;
    back.hidden = !undo;
    toast.classList.add("fresh");
    clearTimeout(timer);
    timer = window.setTimeout(() => {
      back.hidden = true;
      toast.classList.remove("fresh");
    }, SAID);
  }

  return { element, say, update };
}

/** Where corrections are: in the run, on their way, or in this browser alone. */
function kept(report: Report): HTMLElement[] {
  const { unsaved, saving, kept, edits, refused, refusal } = report.review;
  const problem = refused === null ? [] : [el("span", { class: "warn", title: refused }, "One was refused")];
  if (saving === "unreachable") {
    const until = refusal === null ? "it runs again" : "they can be saved";
    const then = kept ? `This browser keeps them until ${until}.` : `Do not close this window until ${until}.`;
    const title = `${refusal ?? "propos open has stopped"}. ${then}`;
    const nothing = refusal === null ? "No connection" : "Cannot save";
    return [...problem, el("span", { class: "warn", title }, unsaved.length === 0 ? nothing : `${count(unsaved.length)} not saved`), ...download(report)];
  }
  if (saving !== null) return [...problem, el("span", { class: "quiet" }, saving === "saving" ? "Saving …" : edits.length === 0 ? "" : "Saved")];
  return download(report);
}

function download(report: Report): HTMLElement[] {
  const { unsaved, kept } = report.review;
  if (unsaved.length === 0) return [];
  const words = `Download ${count(unsaved.length)}`;
  const title = "Save these corrections as a file, for propos apply";
  const link = el("button", { type: "button", class: "main", title, click: () => save(report) }, words);
  return kept ? [link] : [el("span", { class: "warn" }, "Not stored in this browser"), link];
}

/** Hand the corrections over as a file, and say what to do with it. */
function save(report: Report): void {
  // Each has its own name: a browser would rename a second file, and the shown command would be wrong.
  const name = `edits-${new Date().toISOString().slice(0, 19).replaceAll(/[-:]/g, "").replace("T", "-")}.jsonl`;
  saveAs(name, asLines(report.review.unsaved), "application/jsonl");
  const close = el("button", { type: "button", class: "main" }, "Close");
  const dialog = el(
    "dialog",
    { class: "question", "aria-label": "Download" },
    el("h2", {}, "Corrections downloaded"),
    el("p", {}, "Apply them to the run, in the folder of the downloaded file; all commands then use them, and so does this page when it is opened again:"),
    el("pre", {}, `propos apply ${report.review.folder} ${name}`),
    el("p", { class: "quiet" }, "Until then this browser keeps them. Edits that are applied twice count once. If the run belongs to another person, send them the file."),
    el("div", { class: "answers" }, close),
  );
  close.addEventListener("click", () => dialog.close());
  showDialog(dialog);
}
