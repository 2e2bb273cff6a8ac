/** The selected images, on any screen. */
export class Selection {
  readonly images = new Set<number>();
  /** Whether a plain click chooses instead of opening, as fingers need it. */
  choosing = false;
  /** The image that is shown large, which keys then mean. */
  viewed: number | null = null;
  private anchor: { list: readonly number[]; place: number } | null = null;
  private readonly listeners = new Set<() => void>();

  /** Call a function after each change, until the one that is returned is called. */
  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  toggle(list: readonly number[], place: number): void {
    const image = list[place] as number;
    if (!this.images.delete(image)) this.images.add(image);
    this.anchor = { list, place };
    this.notify();
  }

  /** Select a range from the last selected image of the same list. */
  extend(list: readonly number[], place: number): void {
    const from = this.anchor?.list === list ? this.anchor.place : place;
    for (let at = Math.min(from, place); at <= Math.max(from, place); at++) this.images.add(list[at] as number);
    this.anchor = { list, place: from };
    this.notify();
  }

  /** Begin at a place, if nothing was chosen in this list yet. */
  begin(list: readonly number[], place: number): void {
    if (this.anchor?.list !== list || this.images.size === 0) this.anchor = { list, place };
  }

  add(images: readonly number[]): void {
    for (const image of images) this.images.add(image);
    this.notify();
  }

  choose(on: boolean): void {
    this.choosing = on;
    this.notify();
  }

  clear(): void {
    this.images.clear();
    this.anchor = null;
    this.notify();
  }

  private notify(): void {
    for (const listener of this.listeners) listener();
  }
}
