import { type Edit, asLines, fromLines } from "./edits";

/** Corrections that this browser keeps for a run; some browsers refuse to keep anything for a file. */
export class BrowserStorage {
  private readonly key: string;
  private last: { text: string; edits: readonly Edit[] } = { text: "", edits: [] }; // what was read or written before
  private strange = false; // the content cannot be read as edits: it may be a newer page's, and is not overwritten
  kept = true;

  constructor(run: string) {
    this.key = `propos ${run}`;
  }

  read(): readonly Edit[] {
    try {
      const text = localStorage.getItem(this.key) ?? "";
      if (text !== this.last.text) this.last = { text, edits: fromLines(text) };
      return this.last.edits;
    } catch (error) {
      this.strange = error instanceof SyntaxError;
      if (this.strange) console.warn("The corrections stored in this browser cannot be read.");
      this.kept = false;
      return [];
    }
  }

  write(edits: readonly Edit[]): void {
    if (this.strange) return;
    const { last } = this;
    const goesOn = last.edits.every((edit, at) => edit === edits[at]);
    const text = goesOn ? last.text + asLines(edits.slice(last.edits.length)) : asLines(edits);
    try {
      if (text === "") localStorage.removeItem(this.key);
      else localStorage.setItem(this.key, text);
      this.last = { text, edits };
      this.kept = true;
    } catch {
      this.kept = false;
    }
  }

  /** Listen to changes by other windows of this browser. */
  listen(changed: () => void): void {
    window.addEventListener("storage", (event) => event.key === this.key && changed());
  }
}
