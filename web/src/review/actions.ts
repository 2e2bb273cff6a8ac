import type { Report } from "../report";
import { images as inWords } from "../words";
import { NEW, askText, candidates, chooseCluster } from "./dialogs";
import type { Correction } from "./edits";
import { isCluster, told } from "./words";

const MOST_NAME = 200;
const MOST_TEXT = 2_000;

/** What a person can do to images and clusters; each says what it did. */
export class Actions {
  constructor(
    private readonly report: Report,
    private readonly say: (words: string) => void,
  ) {}

  move(images: readonly number[]): void {
    if (images.length === 0) return;
    const homes = new Set(images.map((image) => this.report.cluster[image] as number));
    const [home] = homes;
    const from = homes.size === 1 ? (home as number) : null;
    const choice = {
      title: `Move ${inWords(images.length)} to …`,
      words: "Clusters that are alike come first.",
      candidates: candidates(this.report, from, new Set(from === null ? [] : [from])),
      fresh: true,
    };
    chooseCluster(this.report, choice, (id) => {
      if (id === NEW) return this.split(images);
      this.make({ op: "move", images: this.keys(images), into: id }, true);
    });
  }

  split(images: readonly number[]): void {
    if (images.length === 0) return;
    const into = this.report.review.freeId();
    this.make({ op: "split", images: this.keys(images), into }, true);
  }

  junk(images: readonly number[]): void {
    if (images.length > 0) this.make({ op: "junk", images: this.keys(images) }, true);
  }

  confirm(images: readonly number[]): void {
    if (images.length > 0) this.make({ op: "confirm", images: this.keys(images) }, true);
  }

  confirmCluster(id: number | null): void {
    if (isCluster(id)) this.make({ op: "confirm", cluster: id });
  }

  junkCluster(id: number | null): void {
    if (isCluster(id)) this.make({ op: "junk", cluster: id });
  }

  rename(id: number | null): void {
    if (!isCluster(id)) return;
    const name = this.report.clusterOf(id)?.name ?? "";
    const words = "Nothing takes the name away.";
    askText({ title: `Name cluster ${id}`, words, value: name, lines: 1, most: MOST_NAME }, (given) => {
      if (given !== (name === "" ? null : name)) this.make({ op: "rename", cluster: id, name: given });
    });
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
      words: "The other keeps its name. Those alike come first.",
      candidates: candidates(this.report, id, new Set([id])),
      fresh: false,
    };
    chooseCluster(this.report, choice, (into) => {
      this.make({ op: "merge", clusters: [id], into });
      if (location.hash === `#/cluster/${id}`) location.hash = `#/cluster/${into}`;
    });
  }

  undo(): void {
    const undone = this.report.review.undo();
    this.say(undone === null ? "There is nothing to undo." : `Undone: ${told(this.report, undone)}`);
  }

  redo(): void {
    const redone = this.report.review.redo();
    this.say(redone === null ? "There is nothing to redo." : `Done again: ${told(this.report, redone)}`);
  }

  private keys(images: readonly number[]): string[] {
    return images.map((image) => this.report.keyOf(image));
  }

  private make(correction: Correction, ofImages = false): void {
    if (ofImages) this.report.selection.clear();
    const edit = this.report.review.make(correction);
    this.say(told(this.report, edit));
  }
}
