import { el, meantForBrowser } from "./dom";
import type { Report } from "./report";
import { JUNK } from "./review/replay";
import { described, picture } from "./thumb";
import { openViewer } from "./viewer";
import { count } from "./words";

const PAGE = 120;

/** Images in a grid: arrow keys move, Enter opens, Space chooses, "more" shows more. */
export function gallery(report: Report, images: readonly number[], label: string): HTMLElement {
  const grid = el("div", { class: "gallery", role: "group", "aria-label": label });
  const more = el("button", { class: "plain more", type: "button" });
  let shown = 0;

  function grow(): void {
    const next = images.slice(shown, shown + PAGE);
    grid.append(...next.map((image, place) => thumbnail(shown + place, image)));
    shown += next.length;
    more.hidden = shown >= images.length;
    more.textContent = `Show more (${count(images.length - shown)} left)`;
  }

  function thumbnail(place: number, image: number): HTMLElement {
    const thumb = el(
      "button",
      {
        class: "thumb",
        type: "button",
        tabindex: place === 0 ? 0 : -1,
        "aria-label": described(report, image),
        "data-image": image,
        "data-mark": markOf(report, image),
        title: report.nameOf(image),
        click: (event: MouseEvent) => choose(event, place),
      },
      picture(report, image),
    );
    showChosen(report, thumb);
    return thumb;
  }

  function choose(event: MouseEvent, place: number): void {
    const { selection } = report;
    if (event.shiftKey) selection.extend(images, place);
    else if (event.ctrlKey || event.metaKey || selection.choosing) selection.toggle(images, place);
    else openViewer(report, images, place);
  }

  grid.addEventListener("keydown", (event) => press(report, grid, images, event));
  grid.addEventListener("keyup", (event) => event.key === " " && event.preventDefault()); // some browsers click then
  more.addEventListener("click", grow);
  grow();
  return el("div", {}, grid, more);
}

/** What a person has said of an image. */
function markOf(report: Report, image: number): string | null {
  if (report.cluster[image] === JUNK) return "✕";
  return report.review.confirmed[image] === 1 ? "✓" : null;
}

/** Let a thumbnail show whether it is chosen. */
export function showChosen(report: Report, thumb: HTMLElement): void {
  thumb.setAttribute("aria-pressed", String(report.selection.images.has(Number(thumb.dataset["image"]))));
}

/** Only one thumbnail is in the tab order; arrows move from there by what is beside, above and below. */
function press(report: Report, grid: HTMLElement, images: readonly number[], event: KeyboardEvent): void {
  const all = [...grid.children] as HTMLElement[];
  const now = all.indexOf(document.activeElement as HTMLElement);
  if (now < 0) return;
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "a") {
    event.preventDefault();
    return report.selection.add(images);
  }
  if (meantForBrowser(event)) return;
  if (event.key === " ") {
    event.preventDefault();
    return report.selection.toggle(images, now);
  }
  const columns = getComputedStyle(grid).gridTemplateColumns.split(" ").length;
  const steps: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
  const targets: Record<string, number> = { Home: 0, End: all.length - 1 };
  const target = targets[event.key] ?? now + (steps[event.key] ?? Number.NaN);
  if (all[target] === undefined) return;
  event.preventDefault();
  if (event.shiftKey) {
    report.selection.begin(images, now);
    report.selection.extend(images, target);
  }
  focusOn(grid, target);
}

/** Give a thumbnail the focus, and the gallery's place in the tab order. */
export function focusOn(grid: HTMLElement, place: number): void {
  const all = [...grid.children] as HTMLElement[];
  const next = all[Math.min(place, all.length - 1)];
  for (const thumb of all) if (thumb.tabIndex === 0) thumb.tabIndex = -1;
  if (next === undefined) return;
  next.tabIndex = 0;
  next.focus();
}
