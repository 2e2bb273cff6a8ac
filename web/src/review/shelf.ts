import { type Edit, asLines, fromLines } from "./edits";

/** Corrections that this browser keeps for a run; some browsers refuse to keep anything for a file. */
export class Shelf {
  private readonly key: string;
  kept = true;

  constructor(run: string) {
    this.key = `propos ${run}`;
  }

  read(): Edit[] {
    try {
      return fromLines(localStorage.getItem(this.key) ?? "");
    } catch (error) {
      // What cannot be read as edits is not written over: it may be a newer page's.
      if (error instanceof SyntaxError) console.warn("The corrections that this browser kept cannot be read.");
      this.kept = false;
      return [];
    }
  }

  write(edits: readonly Edit[]): void {
    try {
      if (edits.length === 0) localStorage.removeItem(this.key);
      else localStorage.setItem(this.key, asLines(edits));
      this.kept = true;
    } catch {
      this.kept = false;
    }
  }

  /** Hear of what another window of this browser keeps. */
  listen(changed: () => void): void {
    window.addEventListener("storage", (event) => event.key === this.key && changed());
  }
}
