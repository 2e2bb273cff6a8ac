import type { ReviewPayload } from "../payload";
import type { Report } from "../report";
import { Tree } from "../tree";
import { integers } from "../unpack";
import { type Correction, type Edit, Known, UndoHistory, after, fromLines, newEdit } from "./edits";
import { type Proposal, type ProposedName, openNames, readProposals } from "./proposals";
import { regroup } from "./regroup";
import { type Saving, Server, type Similar } from "./server";
import { JUNK, Replay, UNCONFIRMED, WRONG, sharedStart } from "./replay";
import { BrowserStorage } from "./storage";

type Listener = (regrouped: boolean) => void;
type Renumbering = (now: ReadonlyMap<number, number>) => void;

/** A person's corrections: made here, kept, and shown by every screen at once. */
export class Review {
  /** The run's folder as a shell takes it. */
  readonly folder: string;
  /** All edits in their order: those that the run has, then those that only this browser has. */
  edits: readonly Edit[] = [];
  /** What became of the last correction that could not be saved. */
  refused: string | null = null;
  /** Whether the questions are others than those of when the page was written. */
  askedAnew = false;
  private saved: readonly Edit[];
  private known: Known; // of what was saved
  private own: readonly Edit[] = [];
  private readonly written: number;
  private readonly ids: number[];
  /** The tree of clusters, if one was grown. */
  readonly tree: Tree | null;
  private readonly proposals: readonly Proposal[];
  private names: ReadonlyMap<number, ProposedName> = new Map(); // that are proposed, by cluster
  private readonly empty: Set<number>; // clusters that training left without an image
  private readonly storage: BrowserStorage;
  private readonly server: Server | null;
  private readonly listeners = new Set<Listener>();
  /** Called with clusters that were split off here and got another id, because theirs was taken. */
  renumbered: Renumbering = () => {};
  private readonly state: Replay;
  private turns = new UndoHistory();
  private seen: ReadonlyMap<number, number> | null = null;

  constructor(
    private readonly report: Report,
    payload: ReviewPayload,
    edits: readonly string[],
    proposals: string,
  ) {
    this.proposals = readProposals(proposals);
    this.ids = payload.ids;
    this.folder = quoted(runPath() ?? payload.folder);
    const trained = payload.trained === null ? report.cluster : integers(payload.trained);
    this.empty = new Set(payload.ids);
    for (let image = 0; image < report.count; image++) this.empty.delete(trained[image] as number);
    this.tree = payload.tree === null ? null : new Tree(payload.tree.leaves, payload.tree.merges, integers(payload.tree.leaf));
    this.state = new Replay(report.names, trained, this.ids, this.tree);
    this.saved = edits.flatMap(fromLines);
    this.known = this.knownOf(this.saved);
    this.written = payload.written;
    this.storage = new BrowserStorage(payload.run);
    this.server = document.documentElement.dataset["server"] === undefined ? null : new Server();
    this.names = openNames(this.proposals, [], report.byId);
    this.follow();
    this.storage.listen(() => this.server === null && this.follow());
    this.server?.start(
      () => ({ known: this.saved, own: this.own }),
      (log, refused) => this.take(log, refused),
      () => this.notify(false),
    );
  }

  /** Call a function after each change, of clusters or only of what is saved, until the one that is returned is called. */
  listen(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  make(correction: Correction): Edit {
    return this.append(newEdit(correction));
  }

  /** The names that are proposed and neither accepted nor dismissed, by cluster. */
  get proposedNames(): ReadonlyMap<number, ProposedName> {
    return this.names;
  }

  /** Accept a proposed name: its edit has the proposal's id, so that the run knows it was accepted. */
  acceptName(cluster: number, { id, name }: ProposedName): Edit {
    if (this.edits.some((edit) => edit.id === id)) return this.make({ op: "redo", edit: id });
    return this.append({ ...newEdit({ op: "rename", cluster, name }), id });
  }

  private append(edit: Edit): Edit {
    const own = [...this.own, edit];
    // Usually no other window has stored anything since.
    this.own = this.storage.read() === this.own ? own : this.together(own);
    this.storage.write(this.own);
    this.show([...this.saved, ...this.own]);
    this.server?.push();
    return edit;
  }

  /** Undo the last edit and return it. */
  undo(): Edit | null {
    const { undo } = this.turns;
    if (undo !== null) this.make({ op: "undo", edit: undo.id });
    return undo;
  }

  redo(): Edit | null {
    const { redo } = this.turns;
    if (redo !== null) this.make({ op: "redo", edit: redo.id });
    return redo;
  }

  get can(): { undo: boolean; redo: boolean } {
    return { undo: this.turns.undo !== null, redo: this.turns.redo !== null };
  }

  /** An id for a cluster that is to be split off. */
  freeId(): number {
    return new Known([], this.own, this.known).free();
  }

  /** Whether an image is confirmed. */
  confirmed(image: number): boolean {
    const how = this.state.how[image];
    return how !== UNCONFIRMED && how !== WRONG;
  }

  /** How a person judged an image: reviewed, audited, moved, called wrong, or not at all. */
  howOf(image: number): number {
    return this.state.how[image] as number;
  }

  /** Whether an image is reviewed: confirmed, moved or junk. */
  isReviewed(image: number): boolean {
    return this.confirmed(image) || this.report.cluster[image] === JUNK;
  }

  /** The number of reviewed images of each cluster. */
  get seenByCluster(): ReadonlyMap<number, number> {
    this.seen ??= this.countReviewed();
    return this.seen;
  }

  /** The cluster that one is part of by now, if there is one. */
  partOf(cluster: number): number | null {
    return this.state.partOf(cluster);
  }

  /** Have the server choose the next images to ask about; returns how many, or nothing where it does not answer. */
  async askOn(): Promise<number | null> {
    const found = (await this.server?.questions()) ?? null;
    if (found !== null) this.report.questions = new Map(found);
    this.askedAnew ||= found !== null;
    return found?.length ?? null;
  }

  /** Have the server find images by a text; nothing without an answer. */
  async byText(text: string, count: number): Promise<number[] | null> {
    return (await this.server?.ask("api/text", { text, count }))?.rows ?? null;
  }

  /** Have the server rank images by their similarity to some; nothing without an answer. */
  async similar(query: object): Promise<Similar | null> {
    return (await this.server?.ask("api/similar", query)) ?? null;
  }

  /** Ask the server what the audit says by now, after drawing up to `count` images; false where it does not answer. */
  async audit(count = 0): Promise<boolean> {
    const found = (await this.server?.audit(count)) ?? null;
    if (found !== null) this.report.audit = found;
    return found !== null;
  }

  /** Edits that only this browser has. */
  get unsaved(): readonly Edit[] {
    return this.own;
  }

  /** Whether there are other edits than when the page was written, whose scores know nothing of them. */
  get unreported(): boolean {
    return this.edits.length !== this.written;
  }

  /** Whether what only this browser has outlives this window. */
  get kept(): boolean {
    return this.storage.kept;
  }

  get saving(): Saving | null {
    return this.server?.saving ?? null;
  }

  /** Why a server that answers does not save. */
  get refusal(): string | null {
    return this.server?.refusal ?? null;
  }

  /** The edits of the storage and of this window, each once, after those of the run. */
  private together(own: readonly Edit[]): Edit[] {
    const kept = this.storage.read();
    const there = new Set(kept.map(({ id }) => id));
    return this.afterSaved([...kept, ...own.filter(({ id }) => !there.has(id))]);
  }

  private afterSaved(own: readonly Edit[]): Edit[] {
    const { kept, renumbered } = after(this.known, own);
    if (renumbered.size > 0) this.renumbered(renumbered);
    return kept;
  }

  private knownOf(log: readonly Edit[]): Known {
    return new Known([...this.ids, ...(this.tree?.ids ?? [])], log);
  }

  /** The ids of the clusters that training found. */
  get trained(): readonly number[] {
    return this.ids;
  }

  /** Whether a node of the tree is divided. */
  isOpen(node: number): boolean {
    return this.state.isOpen(node);
  }

  /** The name of a cluster, or of a node of the tree that is none now. */
  nameOf(node: number): string | null {
    return this.state.names.get(node) ?? null;
  }

  private follow(): void {
    this.own = this.together(this.own);
    this.show([...this.saved, ...this.own]);
  }

  /** Take over the log as the server has it. */
  private take(log: readonly Edit[], refused: { edits: readonly Edit[]; why: string } | null): void {
    const same = sharedStart(this.saved, log);
    if (same < this.saved.length) this.known = this.knownOf(log);
    else for (const edit of log.slice(same)) this.known.add(edit);
    this.saved = log;
    const without = new Set(refused?.edits.map(({ id }) => id));
    if (refused !== null) this.refused = refused.why;
    this.own = this.afterSaved(this.own.filter(({ id }) => !without.has(id)));
    this.storage.write(this.own);
    this.show([...this.saved, ...this.own]);
  }

  private show(edits: readonly Edit[]): void {
    const same = sharedStart(this.edits, edits);
    const goesOn = same === this.edits.length;
    this.edits = edits;
    if (goesOn && same === edits.length) return this.notify(false);
    if (!goesOn) this.turns = new UndoHistory();
    for (const edit of goesOn ? edits.slice(same) : edits) this.turns.add(edit);
    this.state.follow(edits);
    regroup(this.report, this.state, this.empty);
    this.seen = null;
    this.names = openNames(this.proposals, edits, this.report.byId);
    this.notify(true);
  }

  private countReviewed(): Map<number, number> {
    const seen = new Map<number, number>();
    for (let image = 0; image < this.report.count; image++) {
      if (!this.isReviewed(image)) continue;
      const id = this.report.cluster[image] as number;
      seen.set(id, (seen.get(id) ?? 0) + 1);
    }
    return seen;
  }

  private notify(regrouped: boolean): void {
    for (const listener of this.listeners) listener(regrouped);
  }
}

/** Where the run is, on the machine that shows the page: its server says so, or the address of a page that is a file. */
function runPath(): string | null {
  const { server } = document.documentElement.dataset;
  if (server !== undefined) return server;
  const found = location.protocol === "file:" ? /^(.*)\/[^/]+\/[^/]*$/.exec(location.pathname)?.[1] : undefined;
  if (found === undefined) return null;
  try {
    const path = decodeURIComponent(found);
    return /^\/[A-Za-z]:\//.test(path) ? path.slice(1) : path; // of Windows: /C:/…
  } catch {
    return null; // its name is no text
  }
}

function quoted(path: string): string {
  return /^[\w.,:@%+/-]+$/.test(path) ? path : `'${path.replaceAll("'", `'"'"'`)}'`;
}
