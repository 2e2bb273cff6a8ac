import { focusOn } from "./gallery";
import type { Report } from "./report";

/** Remember the focus; the returned function gives it to the next image if the focused one is gone. */
export function focusOf(main: HTMLElement): () => void {
  const active = document.activeElement as HTMLElement | null;
  if (active === null || !main.contains(active)) return () => {};
  const thumbs = [...main.querySelectorAll<HTMLElement>(".thumb")];
  const isAfter = (thumb: HTMLElement): boolean => (active.compareDocumentPosition(thumb) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0;
  const [after, before] = [thumbs.filter(isAfter), thumbs.filter((thumb) => !isAfter(thumb)).reverse()];
  const address = active.getAttribute("href");
  return () => {
    if (main.contains(document.activeElement)) return;
    const same = address === null ? null : main.querySelector<HTMLElement>(`a[href="${CSS.escape(address)}"]`);
    const next = [...after, ...before].find((thumb) => main.contains(thumb)) ?? main.querySelector<HTMLElement>(".thumb");
    if (same === null && next !== null) focusThumb(next);
    else (same ?? main).focus({ preventScroll: true });
  };
}

/** Give the focus to the first of some images that the screen shows, if it is on the screen at all. */
export function focusAmong(report: Report, main: HTMLElement, images: readonly string[]): void {
  const active = document.activeElement;
  if (active !== null && active !== document.body && !main.contains(active)) return;
  const wanted = new Set(images);
  const found = [...main.querySelectorAll<HTMLElement>(".thumb")].filter(({ dataset }) => wanted.has(report.keyOf(Number(dataset["image"]))));
  const list = active?.closest(".gallery") ?? null;
  const thumb = found.find((each) => list?.contains(each)) ?? found[0];
  if (thumb !== undefined) focusThumb(thumb);
}

function focusThumb(thumb: HTMLElement): void {
  const grid = thumb.parentElement as HTMLElement;
  focusOn(grid, [...grid.children].indexOf(thumb));
}

/** Rebuild the screen and keep the scroll position, the length of each list, and the focus. */
export function keepingPlace(main: HTMLElement, make: () => void): void {
  const lists = (): HTMLElement[] => [...main.querySelectorAll<HTMLElement>(".gallery")];
  const before = lists();
  const [top, active] = [window.scrollY, document.activeElement as HTMLElement | null];
  const shown = new Map(before.map((list) => [list.ariaLabel, list.children.length]));
  const within = active?.closest<HTMLElement>(".gallery") ?? null;
  const place = within === null ? -1 : [...within.children].indexOf(active as HTMLElement);
  const [key, words] = [active?.closest<HTMLElement>("[data-cluster]")?.dataset["cluster"], active?.textContent];
  const lost = main.contains(active);
  make();
  for (const list of lists()) {
    const more = list.nextElementSibling as HTMLElement | null;
    while (more !== null && !more.hidden && list.children.length < (shown.get(list.ariaLabel) ?? 0)) more.click();
    if (within !== null && list.ariaLabel === within.ariaLabel) focusOn(list, place);
  }
  if (lost && within === null) {
    const same = [...main.querySelectorAll<HTMLElement>("button, a")].find(
      (each) => each.textContent === words || (each.matches(".card") && each.closest<HTMLElement>("[data-cluster]")?.dataset["cluster"] === key),
    );
    (same ?? main).focus({ preventScroll: true });
  } else if (lost && !main.contains(document.activeElement)) main.focus({ preventScroll: true });
  window.scrollTo(0, top);
}
