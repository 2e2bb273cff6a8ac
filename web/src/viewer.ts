import { el, isBrowserShortcut, replace } from "./dom";
import { originalOf } from "./original";
import type { Report } from "./report";
import { picture } from "./thumb";
import { count, fixed } from "./format";

const ENLARGED = 320;
const ACTIONS = [["More like this", "f"], ["Move", "m"], ["Split off", "s"], ["Junk", "j"], ["Confirm", "c"]] as const;
const CRISP = 64; // up to this side, pixels are shown as squares

/** Show one image large, with the arrow keys leading to its neighbours in the list it came from. */
export function openViewer(report: Report, images: readonly number[], start: number): void {
  const stage = el("div", { class: "stage" });
  const facts = el("dl", { class: "facts" });
  const note = el("p", { class: "quiet", "aria-live": "polite" });
  const before = el("button", { class: "plain", type: "button", "aria-label": "Previous image" }, "←");
  const after = el("button", { class: "plain", type: "button", "aria-label": "Next image" }, "→");
  const close = el("button", { class: "plain", type: "button" }, "Close");
  const place = el("span", { class: "quiet" });
  const dialog = el(
    "dialog",
    { class: "viewer", "aria-label": "Image" },
    el("div", { class: "bar" }, before, after, place, close),
    stage,
    note,
    facts,
    el("div", { class: "bar doing", role: "group", "aria-label": "With this image" }, deeds()),
  );
  let at = start;

  function show(): void {
    const image = images[at] as number;
    report.selection.viewed = image;
    before.disabled = at === 0;
    after.disabled = at === images.length - 1;
    place.textContent = `${count(at + 1)} of ${count(images.length)}`;
    note.textContent = "";
    replace(stage, fullImage(report, image, (words) => (note.textContent = words)));
    update();
  }

  function update(): void {
    replace(facts, ...factsOf(report, images[at] as number, () => dialog.close()));
  }

  /** A button for each key that means this image. */
  function deeds(): HTMLElement[] {
    return ACTIONS.map(([words, key]) => {
      const click = (): void => void dialog.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      return el("button", { type: "button", title: `${words} (${key.toUpperCase()})`, click }, words);
    });
  }

  function move(step: number): void {
    at = Math.min(images.length - 1, Math.max(0, at + step));
    show();
  }

  before.addEventListener("click", () => move(-1));
  after.addEventListener("click", () => move(1));
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => {
    report.selection.viewed = null;
    leave();
    dialog.remove();
  });
  const leave = report.review.listen(update);
  window.addEventListener("hashchange", () => dialog.close(), { once: true }); // to another screen
  dialog.addEventListener("keydown", (event) => {
    if (isBrowserShortcut(event)) return;
    if (event.key === "ArrowLeft") move(-1);
    if (event.key === "ArrowRight") move(1);
  });
  document.body.append(dialog);
  show();
  dialog.showModal();
}

/** The original where it still is, else the thumbnail made large. */
function fullImage(report: Report, image: number, say: (words: string) => void): HTMLElement {
  const small = el("div", { class: "enlarged" }, picture(report, image));
  const address = originalOf(report, image);
  if (address === null) return small;
  const full = el("img", { src: address, alt: report.nameOf(image) });
  full.addEventListener("load", () => enlarge(full));
  full.addEventListener("error", () => {
    full.replaceWith(small);
    say("The original is missing, or this browser cannot show it; this is its thumbnail.");
  });
  return full;
}

/** Make a small original as large as a thumbnail would be. */
function enlarge(image: HTMLImageElement): void {
  const { naturalWidth: width, naturalHeight: height } = image;
  const longest = Math.max(width, height);
  if (longest === 0 || longest >= ENLARGED) return;
  image.style.width = `${Math.max(1, Math.round((ENLARGED * width) / longest))}px`;
  image.classList.toggle("crisp", longest <= CRISP);
}

function factsOf(report: Report, image: number, leave: () => void): HTMLElement[] {
  const id = report.cluster[image] as number;
  const rows: [string, string | HTMLElement][] = [
    ["Image", report.nameOf(image)],
    ["Cluster", el("a", { href: `#/cluster/${id}`, click: leave }, report.clusterName(id))],
    ["Reviewed", report.review.isReviewed(image) ? "yes" : "not yet"],
    ["Confidence", fixed(report.confidence[image] ?? 0)],
    ["Distance", fixed(report.distance[image] ?? 0)],
  ];
  if (report.labels !== null) rows.push(["Label", report.labels.names[report.labels.of[image] ?? 0] ?? ""]);
  return rows.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]);
}
