import { el } from "./dom";
import type { Sheets } from "./payload";

const KEY = "propos picture size";
const [LEAST, MOST, STEP] = [48, 320, 16]; // pixels
const [USUAL, OF_FEW_PIXELS] = [112, 80]; // unless a person chose
const FEW_PIXELS = 32;
const SMALL = 64; // which lists may always have

/** How large pictures are in lists; this browser remembers it. */
export class PictureSize {
  value: number;
  /** The largest size at which pictures are sharp. */
  readonly most: number;
  private readonly listeners = new Set<() => void>();

  constructor(sheets: Sheets | null, originals: boolean) {
    this.most = sheets === null || originals || sheets.whole ? MOST : Math.max(SMALL, sheets.side);
    this.value = Math.min(this.most, remembered() ?? ((sheets?.side ?? 0) > FEW_PIXELS ? USUAL : OF_FEW_PIXELS));
    this.apply();
  }

  /** Call a function when the size changes, until the one that is returned is called. */
  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  set(value: number): void {
    this.value = value;
    this.apply();
    try {
      localStorage.setItem(KEY, String(value));
    } catch {
      // A browser that keeps nothing for files forgets the size too.
    }
    for (const listener of this.listeners) listener();
  }

  private apply(): void {
    document.documentElement.style.setProperty("--picture", `${this.value}px`);
  }
}

function remembered(): number | null {
  try {
    const value = Number(localStorage.getItem(KEY));
    return value >= LEAST && value <= MOST ? value : null;
  } catch {
    return null;
  }
}

/** The slider that sets it. */
export function sizeSlider(size: PictureSize): HTMLElement {
  const input = el("input", { type: "range", id: "size", min: LEAST, max: size.most, step: STEP, value: size.value });
  input.addEventListener("input", () => size.set(Number(input.value)));
  return el("label", { class: "size", for: "size" }, "Picture size", input);
}
