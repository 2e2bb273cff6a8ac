import { arrange, el, mark, isBrowserShortcut } from "./dom";
import type { Report } from "./report";
import { originalOf } from "./original";
import { JUNK } from "./review/replay";
import { described, picture } from "./thumb";
import { openViewer } from "./viewer";
import { count } from "./format";

const PAGE = 120;
const GAP = 6; // pixels between pictures, as in `style/gallery.css`
const CRISP = 64; // up to this side pixels are shown as squares where they are twice as large

/** The number of pictures of a size in a row, and the distance between their left edges. */
export function columnsOf(width: number, size: number): { columns: number; pitch: number } {
  const columns = Math.max(1, Math.floor((width + GAP) / (size + GAP)));
  return { columns, pitch: (width + GAP) / columns };
}

/** Images in a grid: arrow keys move, Enter opens, Space chooses, "more" shows more. */
export class Gallery {
  readonly element: HTMLElement;
  private readonly grid: HTMLElement;
  private readonly more = el("button", { class: "plain more", type: "button", click: () => this.grow() });
  private readonly thumbs = new Map<number, HTMLElement>();
  private images: readonly number[] = [];
  private most = PAGE;
  private sharp = false; // whether originals lie over the thumbnails

  constructor(
    private readonly report: Report,
    images: readonly number[],
    label: string,
  ) {
    this.grid = el("div", { class: "gallery", role: "group", "aria-label": label });
    this.grid.addEventListener("keydown", (event) => this.press(event));
    this.grid.addEventListener("keyup", (event) => event.key === " " && event.preventDefault()); // some browsers click then
    this.element = el("div", {}, this.grid, this.more);
    new ResizeObserver(() => this.sharpen()).observe(this.grid);
    this.show(images);
  }

  /** Show these images in their current state; if the focused image is removed, the next one gets the focus. */
  show(images: readonly number[] = this.images): void {
    const place = this.place();
    const before = this.images.slice(0, Math.max(0, place));
    this.images = images;
    const shown = images.slice(0, this.most);
    const wanted = new Set(shown);
    for (const image of this.thumbs.keys()) if (!wanted.has(image)) this.thumbs.delete(image);
    arrange(this.grid, shown.map((image) => this.thumb(image)));
    this.more.hidden = shown.length === images.length;
    this.more.textContent = `Show more (${count(images.length - shown.length)} left)`;
    if (place >= 0 && this.place() < 0) focusOn(this.grid, before.filter((image) => wanted.has(image)).length);
    else this.oneInTabOrder();
  }

  /** The position of the focus in the list; −1: elsewhere. */
  private place(): number {
    return [...this.grid.children].indexOf(document.activeElement as Element);
  }

  private grow(): void {
    this.most += PAGE;
    this.show();
  }

  private thumb(image: number): HTMLElement {
    const thumb = this.thumbs.get(image) ?? this.newThumb(image);
    mark(thumb, "aria-label", described(this.report, image));
    mark(thumb, "data-mark", markOf(this.report, image));
    showChosen(this.report, thumb);
    return thumb;
  }

  private newThumb(image: number): HTMLElement {
    const click = (event: MouseEvent): void => this.choose(event, this.images.indexOf(image));
    const title = this.report.nameOf(image);
    const thumb = el("button", { class: "thumb", type: "button", tabindex: -1, "data-image": image, title, click }, picture(this.report, image));
    this.thumbs.set(image, thumb);
    if (this.sharp) this.layOriginal(thumb, image);
    return thumb;
  }

  /** Load originals for pictures that are shown larger than their thumbnails. */
  private sharpen(): void {
    const { sheets } = this.report;
    const width = this.grid.firstElementChild?.clientWidth ?? 0;
    if (sheets === null || width === 0) return;
    this.grid.classList.toggle("crisp", sheets.whole && sheets.side <= CRISP && width >= 2 * sheets.side);
    if (this.sharp || width * devicePixelRatio <= sheets.side) return;
    this.sharp = true;
    for (const [image, thumb] of this.thumbs) this.layOriginal(thumb, image);
  }

  /** Show an image's file over its thumbnail, which remains if the file is missing or cannot be shown. */
  private layOriginal(thumb: HTMLElement, image: number): void {
    const address = originalOf(this.report, image);
    if (address === null) return;
    const full = el("img", { loading: "lazy", decoding: "async", alt: "", draggable: "false" });
    full.addEventListener("error", () => full.remove());
    full.addEventListener("load", () => full.classList.toggle("crisp", Math.max(full.naturalWidth, full.naturalHeight) <= CRISP));
    full.src = address; // after `loading`, or it is fetched at once
    thumb.firstElementChild?.append(full);
  }

  /** Only one thumbnail is in the tab order; arrows move from there. */
  private oneInTabOrder(): void {
    const first = this.grid.firstElementChild as HTMLElement | null;
    if (first !== null && this.grid.querySelector('[tabindex="0"]') === null) first.tabIndex = 0;
  }

  private choose(event: MouseEvent, place: number): void {
    const { selection } = this.report;
    if (event.shiftKey) selection.extend(this.images, place);
    else if (event.ctrlKey || event.metaKey || selection.choosing) selection.toggle(this.images, place);
    else openViewer(this.report, this.images, place);
  }

  /** Move left, right, up and down. */
  private press(event: KeyboardEvent): void {
    const { selection } = this.report;
    const now = this.place();
    if (now < 0) return;
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "a") {
      event.preventDefault();
      return selection.add(this.images);
    }
    if (isBrowserShortcut(event)) return;
    if (event.key === " ") {
      event.preventDefault();
      return selection.toggle(this.images, now);
    }
    const columns = getComputedStyle(this.grid).gridTemplateColumns.split(" ").length;
    const steps: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
    const targets: Record<string, number> = { Home: 0, End: this.grid.children.length - 1 };
    const target = targets[event.key] ?? now + (steps[event.key] ?? Number.NaN);
    if (this.grid.children[target] === undefined) return;
    event.preventDefault();
    if (event.shiftKey) {
      selection.begin(this.images, now);
      selection.extend(this.images, target);
    }
    focusOn(this.grid, target);
  }
}

/** The mark of an image: confirmed, moved or junk. */
function markOf(report: Report, image: number): string | null {
  if (report.cluster[image] === JUNK) return "✕";
  return report.review.confirmed(image) ? "✓" : null;
}

/** Show on a thumbnail whether it is selected. */
export function showChosen(report: Report, thumb: HTMLElement): void {
  mark(thumb, "aria-pressed", String(report.selection.images.has(Number(thumb.dataset["image"]))));
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
