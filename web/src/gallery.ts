import { el, meantForBrowser } from "./dom";
import type { Report } from "./report";
import { described, picture } from "./thumb";
import { openViewer } from "./viewer";
import { count } from "./words";

const PAGE = 120;

/** Images in a grid: arrow keys move, Enter opens, "more" shows more. */
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
    return el(
      "button",
      {
        class: "thumb",
        type: "button",
        tabindex: place === 0 ? 0 : -1,
        "aria-label": described(report, image),
        title: report.nameOf(image),
        click: () => openViewer(report, images, place),
      },
      picture(report, image),
    );
  }

  grid.addEventListener("keydown", (event) => moveFocus(grid, event));
  more.addEventListener("click", grow);
  grow();
  return el("div", {}, grid, more);
}

/** Only one thumbnail is in the tab order; arrows move from there by what is beside, above and below. */
function moveFocus(grid: HTMLElement, event: KeyboardEvent): void {
  const all = [...grid.children] as HTMLElement[];
  const now = all.indexOf(document.activeElement as HTMLElement);
  if (now < 0 || meantForBrowser(event)) return;
  const columns = getComputedStyle(grid).gridTemplateColumns.split(" ").length;
  const steps: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
  const targets: Record<string, number> = { Home: 0, End: all.length - 1 };
  const target = targets[event.key] ?? now + (steps[event.key] ?? Number.NaN);
  const next = all[target];
  if (next === undefined) return;
  event.preventDefault();
  (all[now] as HTMLElement).tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}
