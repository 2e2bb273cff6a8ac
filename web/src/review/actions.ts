import type { Report } from "../report";
import { count, images as inWords } from "../format";
import { evenly } from "../similar";
import { NEW, askAgreement, askText, candidates, chooseCluster } from "./dialogs";
import type { Correction } from "./edits";
import { cohesion, describeEdit, isCluster, reviewedCount } from "./texts";

const MOST_NAME = 200;
const MOST_TEXT = 2_000;
const MOST_LIKE = 200; // images that an address of "more like this" holds
const MANY = 24; // images above which a person is asked before all of them change at once

/** The actions on images and clusters; each reports what it did. */
export class Actions {
  constructor(
    private readonly report: Report,
    /** Says what was done, and offers to undo it. */
    private readonly say: (words: string, undo?: boolean) => void,
    /** Brings images of the screen back into focus. */
    private readonly focus: (images: readonly string[]) => void,
  ) {}

  /** Show the images that are most like some, wherever they are. */
  like(images: readonly number[]): void {
    if (images.length === 0) return this.say("Choose an image first, or give one the focus.");
    this.report.selection.clear();
    location.hash = `#/like/${evenly(images, MOST_LIKE).join(",")}`;
  }

  /** Move images to a cluster of a person's choice; `moved` is told which. */
  move(images: readonly number[], moved: (into: number) => void = () => {}): void {
    if (images.length === 0) return;
    const homes = new Set(images.map((image) => this.report.cluster[image] as number));
    const [home] = homes;
    const from = homes.size === 1 ? (home as number) : null;
    const choice = {
      title: `Move ${inWords(images.length)} to …`,
      words: "Similar clusters come first.",
      candidates: candidates(this.report, from, new Set(from === null ? [] : [from])),
      fresh: true,
    };
    chooseCluster(this.report, choice, (id) => {
      if (id === NEW) return this.split(images, moved);
      this.put(images, id);
      moved(id);
    });
  }

  /** Move images to their suggested other cluster; images without a suggestion stay. */
  other(images: readonly number[]): void {
    const into = new Map<number, number[]>();
    for (const image of images) {
      const id = this.report.alternativeOf(image);
      if (id !== null) into.set(id, [...(into.get(id) ?? []), image]);
    }
    if (images.length > 0 && into.size === 0) return this.say("No other cluster is suggested for it: M moves it to a cluster of your choice.");
    for (const [id, some] of into) this.put(some, id);
  }

  /** Assign images to a cluster: confirm those that are in it, move the others. */
  put(images: readonly number[], into: number): void {
    if (images.length > 0) this.make({ op: "move", images: this.keys(images), into }, true);
  }

  /** Split images off, under a name if a person gives one. */
  split(images: readonly number[], done: (into: number) => void = () => {}): void {
    if (images.length === 0) return;
    const title = `Name the new cluster of ${inWords(images.length)}`;
    askText({ title, words: "Left empty, it has no name.", value: "", lines: 1, most: MOST_NAME }, (name) => {
      const { review } = this.report;
      const into = review.freeId();
      this.report.selection.clear();
      const split = review.make({ op: "split", images: this.keys(images), into });
      if (name !== null) review.make({ op: "rename", cluster: into, name });
      this.say(describeEdit(this.report, split), true);
      done(into);
    });
  }

  junk(images: readonly number[]): void {
    if (images.length > 0) this.make({ op: "junk", images: this.keys(images) }, true);
  }

  /** Answer for an audit whether images are in the right cluster. */
  judge(images: readonly number[], right: boolean): void {
    if (images.length === 0) return;
    this.make(right ? { op: "confirm", images: this.keys(images), how: "audited" } : { op: "wrong", images: this.keys(images) }, true);
  }

  confirm(images: readonly number[]): void {
    if (images.length > 0) this.make({ op: "confirm", images: this.keys(images) }, true);
  }

  /** Confirm images of a cluster of which only some are shown. */
  confirmAll(id: number, images: readonly number[], shown: number): void {
    const hidden = images.length - shown;
    const title = `Confirm all ${inWords(images.length)} left in ${this.report.clusterName(id)}?`;
    const words = `${count(hidden)} of them ${hidden === 1 ? "is" : "are"} not shown. All will count as reviewed. ${this.meaning(id)}`;
    askAgreement({ title, words, yes: `Confirm ${inWords(images.length)}` }, () => this.confirm(images));
  }

  confirmCluster(id: number | null): void {
    if (!isCluster(id)) return;
    const size = this.report.clusterOf(id)?.size ?? 0;
    const left = size - (this.report.review.seenByCluster.get(id) ?? 0);
    const confirm = (): void => this.make({ op: "confirm", cluster: id });
    if (left <= MANY) return confirm();
    const title = `Confirm all ${inWords(size)} of ${this.report.clusterName(id)}?`;
    const words = `${count(left)} of them have not been reviewed. All will count as reviewed. ${this.meaning(id)}`;
    askAgreement({ title, words, yes: `Confirm ${inWords(size)}` }, confirm);
  }

  junkCluster(id: number | null): void {
    if (!isCluster(id)) return;
    const size = this.report.clusterOf(id)?.size ?? 0;
    const junk = (): void => this.make({ op: "junk", cluster: id });
    if (size <= MANY) return junk();
    const title = `Mark all ${inWords(size)} of ${this.report.clusterName(id)} as junk?`;
    askAgreement({ title, words: "They will belong to no cluster.", yes: `Mark ${inWords(size)} as junk` }, junk);
  }

  rename(id: number | null): void {
    if (!isCluster(id)) return;
    const name = this.report.review.nameOf(id) ?? "";
    const words = "Left empty, it has no name.";
    askText({ title: `Name cluster ${id}`, words, value: name, lines: 1, most: MOST_NAME }, (given) => {
      if (given !== (name === "" ? null : name)) this.make({ op: "rename", cluster: id, name: given });
    });
  }

  /** Accept the proposed name of a cluster. */
  acceptName(id: number | null): void {
    const proposed = id === null ? undefined : this.report.review.proposedNames.get(id);
    if (id === null || proposed === undefined) return;
    this.report.review.acceptName(id, proposed);
    this.say(`Named cluster ${id} “${proposed.name}”`, true);
  }

  dismissName(id: number): void {
    const proposed = this.report.review.proposedNames.get(id);
    if (proposed !== undefined) this.make({ op: "dismiss", proposal: proposed.id });
  }

  describe(id: number | null): void {
    if (!isCluster(id)) return;
    const text = this.report.descriptions.get(id) ?? "";
    const title = `Describe ${this.report.clusterName(id)}`;
    const words = "What belongs here, and what does not. Ctrl and Enter save.";
    askText({ title, words, value: text, lines: 5, most: MOST_TEXT }, (given) => {
      if (given !== (text === "" ? null : text)) this.make({ op: "describe", cluster: id, text: given });
    });
  }

  merge(id: number | null): void {
    if (!isCluster(id)) return;
    const choice = {
      title: `Merge ${this.report.clusterName(id)} into …`,
      words: "The other keeps its name. Similar ones come first.",
      candidates: candidates(this.report, id, new Set([id])),
      fresh: false,
    };
    chooseCluster(this.report, choice, (into) => {
      // Before the edit is made, so that neither the screen nor the browser's history shows a cluster that is gone.
      if (location.hash === `#/cluster/${id}`) location.replace(`#/cluster/${into}`);
      this.make({ op: "merge", clusters: [id], into });
    });
  }

  /** Choose the clusters in a branch of the tree: the open nodes are divided. */
  cut(node: number, open: readonly number[]): void {
    const before = reviewedCount(this.report).seen;
    this.report.selection.clear();
    const edit = this.report.review.make({ op: "cut", node, open: [...open] });
    const lost = before - reviewedCount(this.report).seen;
    this.say(`${describeEdit(this.report, edit)}${lost > 0 ? `; ${inWords(lost)} to be reviewed again` : ""}`, true);
  }

  undo(): void {
    const undone = this.report.review.undo();
    if (undone !== null && "images" in undone) this.focus(undone.images);
    this.say(undone === null ? "Nothing to undo." : `Undone: ${describeEdit(this.report, undone)}`);
  }

  redo(): void {
    const redone = this.report.review.redo();
    this.say(redone === null ? "Nothing to redo." : `Redone: ${describeEdit(this.report, redone)}`);
  }

  private keys(images: readonly number[]): string[] {
    return this.report.names.some(images);
  }

  /** A cluster's tightness, in a sentence. */
  private meaning(id: number): string {
    const cluster = this.report.clusterOf(id);
    return cluster === undefined ? "" : cohesion(cluster).meaning;
  }

  private make(correction: Correction, ofImages = false): void {
    if (ofImages) this.report.selection.clear();
    const edit = this.report.review.make(correction);
    this.say(describeEdit(this.report, edit), true);
  }
}
