import type { ReviewPayload } from "../payload";
import type { Report } from "../report";
import { integers } from "../unpack";
import { type Correction, type Edit, Known, after, fromLines, newEdit, undoable } from "./edits";
import { regroup } from "./regroup";
import { JUNK, Replay } from "./replay";
import { type Saving, Server } from "./server";
import { Shelf } from "./shelf";

/** A person's corrections: made here, kept, and shown by every screen at once. */
export class Review {
  /** All edits in their order: those that the run has, then those that only this browser has. */
  edits: Edit[] = [];
  confirmed: Uint8Array = new Uint8Array();
  readonly folder: string;
  /** What became of the last correction that could not be saved. */
  refused: string | null = null;
  private saved: Edit[];
  private own: Edit[] = [];
  private readonly written: number;
  private readonly ids: number[];
  private readonly rows: Map<string, number>;
  private readonly trained: ArrayLike<number>;
  private readonly empty: Set<number>; // clusters that training left without an image
  private readonly shelf: Shelf;
  private readonly server: Server | null;
  private readonly listeners = new Set<() => void>();
  private state: Replay;

  constructor(
    private readonly report: Report,
    payload: ReviewPayload,
  ) {
    this.ids = payload.ids;
    this.folder = payload.folder;
    this.trained = payload.trained === null ? report.cluster : integers(payload.trained);
    this.empty = new Set(payload.ids);
    for (let image = 0; image < report.count; image++) this.empty.delete(this.trained[image] as number);
    this.rows = new Map(Array.from({ length: report.count }, (_, image) => [report.keyOf(image), image]));
    this.saved = fromLines(payload.edits);
    this.written = this.saved.length;
    this.shelf = new Shelf(payload.run);
    this.server = document.documentElement.dataset["server"] === undefined ? null : new Server();
    this.state = new Replay(this.rows, this.trained, this.ids);
    this.follow();
    this.shelf.listen(() => this.server === null && this.follow());
    this.server?.start(
      () => ({ known: this.saved, own: this.own }),
      (log, refused) => this.take(log, refused),
      () => this.tell(),
    );
  }

  /** Call a function after each change, until the one that is returned is called. */
  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  make(correction: Correction): Edit {
    const edit = newEdit(correction);
    this.own = this.together([...this.own, edit]);
    this.shelf.write(this.own);
    this.show([...this.saved, ...this.own]);
    this.server?.push();
    return edit;
  }

  /** Let the last edit count no longer; returns it. */
  undo(): Edit | null {
    const { undo } = undoable(this.edits);
    if (undo !== null) this.make({ op: "undo", edit: undo.id });
    return undo;
  }

  redo(): Edit | null {
    const { redo } = undoable(this.edits);
    if (redo !== null) this.make({ op: "redo", edit: redo.id });
    return redo;
  }

  get can(): { undo: boolean; redo: boolean } {
    const { undo, redo } = undoable(this.edits);
    return { undo: undo !== null, redo: redo !== null };
  }

  /** An id for a cluster that is to be split off. */
  freeId(): number {
    return new Known(this.ids, this.edits).free();
  }

  /** Whether a person has said where an image belongs, or that it belongs nowhere. */
  lookedAt(image: number): boolean {
    return this.confirmed[image] === 1 || this.report.cluster[image] === JUNK;
  }

  /** Edits that only this browser has. */
  get unsaved(): readonly Edit[] {
    return this.own;
  }

  /** How many edits there are since the page was written, whose scores know nothing of them. */
  get unreported(): number {
    return this.edits.length - this.written;
  }

  /** Whether what only this browser has outlives this window. */
  get kept(): boolean {
    return this.shelf.kept;
  }

  get saving(): Saving | null {
    return this.server?.saving ?? null;
  }

  /** What the shelf holds and what was made here, each once, after what the run has. */
  private together(own: readonly Edit[]): Edit[] {
    const kept = this.shelf.read();
    const there = new Set(kept.map(({ id }) => id));
    return after(this.ids, this.saved, [...kept, ...own.filter(({ id }) => !there.has(id))]);
  }

  private follow(): void {
    this.own = this.together(this.own);
    this.show([...this.saved, ...this.own]);
  }

  /** Take over the log as the server has it. */
  private take(log: Edit[], refused: { edits: Edit[]; why: string } | null): void {
    this.saved = log;
    const without = new Set(refused?.edits.map(({ id }) => id));
    if (refused !== null) this.refused = refused.why;
    this.own = after(this.ids, log, this.own.filter(({ id }) => !without.has(id)));
    this.shelf.write(this.own);
    this.show([...this.saved, ...this.own]);
  }

  private show(edits: Edit[]): void {
    const fresh = edits.slice(this.edits.length);
    const goesOn = this.edits.every((edit, at) => edits[at]?.id === edit.id) && fresh.every(({ op }) => op !== "undo" && op !== "redo");
    this.edits = edits;
    if (goesOn) {
      if (fresh.length === 0 && this.confirmed.length > 0) return this.tell();
      for (const edit of fresh) this.state.apply(edit);
    } else {
      this.state = new Replay(this.rows, this.trained, this.ids);
      this.state.applyAll(edits);
    }
    this.confirmed = this.state.confirmed;
    regroup(this.report, this.state, this.empty);
    this.tell();
  }

  private tell(): void {
    for (const listener of this.listeners) listener();
  }
}
