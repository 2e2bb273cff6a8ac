/** The images a person has chosen, on whatever screen. */
export class Selection {
  readonly images = new Set<number>();
  /** Whether a plain click chooses instead of opening, as fingers need it. */
  choosing = false;
  /** The image that is shown large, which keys then mean. */
  viewed: number | null = null;
  private anchor: { list: readonly number[]; place: number } | null = null;
  private readonly listeners: (() => void)[] = [];

  listen(listener: () => void): void {
    this.listeners.push(listener);
  }

  toggle(list: readonly number[], place: number): void {
    const image = list[place] as number;
    if (!this.images.delete(image)) this.images.add(image);
    this.anchor = { list, place };
    this.tell();
  }

  /** Choose from where the last choice was made in the same list. */
  extend(list: readonly number[], place: number): void {
    const from = this.anchor?.list === list ? this.anchor.place : place;
    for (let at = Math.min(from, place); at <= Math.max(from, place); at++) this.images.add(list[at] as number);
    this.anchor = { list, place: from };
    this.tell();
  }

  /** Begin at a place, if nothing was chosen in this list yet. */
  begin(list: readonly number[], place: number): void {
    if (this.anchor?.list !== list || this.images.size === 0) this.anchor = { list, place };
  }

  add(images: readonly number[]): void {
    for (const image of images) this.images.add(image);
    this.tell();
  }

  choose(on: boolean): void {
    this.choosing = on;
    this.tell();
  }

  clear(): void {
    this.images.clear();
    this.anchor = null;
    this.tell();
  }

  private tell(): void {
    for (const listener of this.listeners) listener();
  }
}
