import { type Child, Pane, arrange, el } from "../dom";
import { Gallery } from "../gallery";
import type { Report } from "../report";
import type { Actions } from "../review/actions";
import type { Screen } from "../shell";
import { sizeSlider } from "../size";
import { swatch } from "../swatch";
import { picture } from "../thumb";
import { openQuestions } from "../todo";
import { count, counted, images } from "../format";

const WORDS = "Checking one of these tells most about other images. Y: it is in the right cluster. O: it belongs to the other cluster. J: junk. M: move to any other. Keys apply to the chosen images, else the image in focus.";
const WHEN = "They were selected when this page was written; propos ask also uses the corrections made since.";
const TYPICAL = 4;

/** The images that are most informative to check, in blocks between the same two clusters. */
export function questionsScreen(report: Report, actions: Actions): Screen {
  const lead = el("p", { class: "lead" });
  const words = el("p", { class: "quiet" }, WORDS);
  const when = el("p", { class: "quiet when" }, WHEN);
  const tools = el("div", { class: "tools" }, sizeSlider(report.size));
  const list = el("div");
  const end = new Pane(el("div"));
  const blocks = new Map<string, Block>();
  const content = el("div", { class: "screen" }, el("h1", {}, "Most informative images"), lead, words, when, tools, list, end.element);

  function corrected(): boolean {
    const open = blocksOf(report);
    const left = open.reduce((sum, { inEach }) => sum + [...inEach.values()].flat().length, 0);
    lead.textContent = left === 0 ? "Nothing left to check." : `${images(left)} to check, in ${counted(open.length, "block")}.`;
    words.hidden = tools.hidden = left === 0;
    when.hidden = left === 0 || report.review.askedAnew;
    arrange(
      list,
      open.map(({ key, between, inEach }) => {
        const block = blocks.get(key) ?? new Block(report, actions, between);
        blocks.set(key, block);
        block.show(inEach);
        return block.element;
      }),
    );
    end.show(left === 0, () => (left === 0 ? whatNext(report, corrected) : []));
    return true;
  }

  corrected();
  return { title: () => "Questions", content, corrected, shown: () => content.querySelector<HTMLElement>(".thumb")?.focus({ preventScroll: true }) };
}

type InEach = Map<number, number[]>; // images by the cluster they are in

/** Two clusters with images that may belong to either; one where both are one by now. */
interface QuestionBlock {
  key: string;
  between: number[];
  inEach: InEach;
}

/** Images that are not checked yet, a block for each pair of clusters. */
function blocksOf(report: Report): QuestionBlock[] {
  const blocks = new Map<string, QuestionBlock>();
  for (const image of openQuestions(report)) {
    const [own, other] = [report.cluster[image] as number, report.alternativeOf(image)];
    const between = (other === null ? [own] : [own, other]).sort((one, another) => one - another);
    const key = between.join(" ");
    const block = blocks.get(key) ?? { key, between, inEach: new Map() as InEach };
    blocks.set(key, block);
    block.inEach.set(own, [...(block.inEach.get(own) ?? []), image]);
  }
  return [...blocks.values()];
}

/** Images that may belong to either of two clusters, by where they are. */
class Block {
  readonly element: HTMLElement;
  private images: readonly number[] = [];
  private readonly sides = new Pane(el("div", { class: "sides" }));
  private readonly lists = el("div");
  private readonly inEach = new Map<number, { element: HTMLElement; name: Pane; list: Gallery }>();
  private readonly stay: HTMLButtonElement;
  private readonly go: [id: number, button: HTMLButtonElement][];

  constructor(
    private readonly report: Report,
    actions: Actions,
    private readonly between: readonly number[],
  ) {
    this.stay = el("button", { type: "button", click: () => actions.confirm(this.images) });
    this.go = between.map((id) => [id, el("button", { type: "button", click: () => actions.put(this.images, id) })]);
    const answers = el("div", { class: "head" }, this.stay, this.go.map(([, button]) => button));
    this.element = el("section", { class: "block" }, this.sides.element, this.lists, answers);
  }

  show(inEach: InEach): void {
    const { report, between } = this;
    this.images = [...inEach.values()].flat();
    const shown = between.map((id) => [report.clusterName(id), report.clusterOf(id)?.typical.slice(0, TYPICAL)]);
    this.sides.show(shown, () => between.map((id, place) => side(report, place === 0 ? "" : "or ", id, place === between.length - 1 ? "?" : "")));
    arrange(this.lists, [...inEach].map(([id, found]) => this.listOf(id, found)));
    const [all, are] = this.images.length === 1 ? ["It", "is in the right cluster"] : [`All ${count(this.images.length)}`, "are in the right cluster"];
    this.stay.textContent = `${all} ${are}`;
    for (const [id, button] of this.go) {
      button.hidden = inEach.size === 1 && inEach.has(id); // all are there
      button.textContent = `${all} ${this.images.length === 1 ? "belongs" : "belong"} in ${report.clusterName(id)}`;
    }
  }

  private listOf(id: number, found: readonly number[]): HTMLElement {
    const { name, list, element } = this.inEach.get(id) ?? this.newList(id);
    const called = this.report.clusterName(id);
    name.show(called, () => ["Now in ", swatch(id), called]);
    list.show(found);
    return element;
  }

  private newList(id: number): { element: HTMLElement; name: Pane; list: Gallery } {
    const name = new Pane(el("p", { class: "quiet now" }));
    const list = new Gallery(this.report, [], `Now in ${this.report.clusterName(id)}`);
    const made = { element: el("div", { class: "asked", "data-cluster": id }, name.element, list.element), name, list };
    this.inEach.set(id, made);
    return made;
  }
}

/** A cluster that images may be in, with its most typical ones to compare with. */
function side(report: Report, words: string, id: number, after = ""): HTMLElement {
  const typical = (report.clusterOf(id)?.typical ?? []).slice(0, TYPICAL);
  return el(
    "div",
    {},
    el("h2", {}, words, el("a", { href: `#/cluster/${id}` }, swatch(id), report.clusterName(id)), after),
    el("span", { class: "mosaic strip" }, typical.map((image) => picture(report, image))),
  );
}

/** What to do next when everything is checked. */
function whatNext(report: Report, asked: () => void): Child[] {
  const { folder } = report.review;
  const learn = [el("p", {}, "Continue the run with these corrections:"), el("pre", {}, `propos run --from ${folder}`)];
  if (report.review.saving === null) {
    const first = report.review.unsaved.length > 0 && el("p", {}, "First apply your corrections to the run (Download, below).");
    return [first, ...learn, el("p", {}, "Or select the next images:"), el("pre", {}, `propos report ${folder}`)];
  }
  const said = el("p", { class: "quiet", role: "status" });
  const click = async (): Promise<void> => {
    const found = await report.review.askOn();
    if (found === 0) said.textContent = "No more images to check.";
    else if (found === null) said.textContent = "The server did not respond.";
    else asked();
  };
  return [...learn, el("p", {}, el("button", { type: "button", class: "main", click: () => void click() }, "Select other images")), said];
}
