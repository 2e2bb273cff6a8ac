import { Pane, arrange, el } from "../dom";
import { Gallery } from "../gallery";
import type { Report } from "../report";
import type { Actions } from "../review/actions";
import type { Screen } from "../shell";
import { swatch } from "../swatch";
import { picture } from "../thumb";
import { count, images } from "../words";

const WORDS = "An answer for one of these says most about other images. Y: it is where it belongs. O: it belongs to the other cluster. J: junk. M: to yet another. Keys mean what is chosen, else the image in focus.";
const TYPICAL = 4;

/** The images whose answers would teach most, in blocks that lie between the same two clusters. */
export function questionsScreen(report: Report, actions: Actions): Screen {
  const lead = el("p", { class: "lead" });
  const words = el("p", { class: "quiet" }, WORDS);
  const list = el("div");
  const end = new Pane(el("div"));
  const blocks = new Map<string, Block>();
  const content = el("div", { class: "screen" }, el("h1", {}, "What would teach most"), lead, words, list, end.element);

  function corrected(): boolean {
    const open = blocksOf(report);
    const left = open.reduce((sum, [, found]) => sum + found.length, 0);
    lead.textContent = left === 0 ? "Nothing is asked any longer." : `${images(left)} to answer for, in ${count(open.length)} ${open.length === 1 ? "block" : "blocks"}.`;
    words.hidden = left === 0;
    arrange(
      list,
      open.map(([{ own, other }, found]) => {
        const key = `${own} ${other}`;
        const block = blocks.get(key) ?? new Block(report, actions, own, other);
        blocks.set(key, block);
        block.show(found);
        return block.element;
      }),
    );
    end.show(left === 0, () => (left === 0 ? whatNext(report, corrected) : []));
    return true;
  }

  corrected();
  return { title: () => "Questions", content, corrected, shown: () => content.querySelector<HTMLElement>(".thumb")?.focus({ preventScroll: true }) };
}

/** An image is in one cluster, and may rather belong to another; to none where both are one by now. */
interface Between {
  own: number;
  other: number | null;
}

/** Questions that nobody has answered yet, block by block; those between the same two clusters come one after the other. */
function blocksOf(report: Report): [Between, number[]][] {
  const pairs = new Map<string, Map<number, [Between, number[]]>>();
  for (const image of report.questions.keys()) {
    if (report.review.lookedAt(image)) continue;
    const [own, other] = [report.cluster[image] as number, report.alternativeOf(image)];
    const pair = [own, other].sort().join(" ");
    const sides = pairs.get(pair) ?? new Map<number, [Between, number[]]>();
    const side = sides.get(own) ?? [{ own, other }, []];
    side[1].push(image);
    pairs.set(pair, sides.set(own, side));
  }
  return [...pairs.values()].flatMap((sides) => [...sides.values()]);
}

/** Images of one cluster that may rather belong to another. */
class Block {
  readonly element: HTMLElement;
  private images: readonly number[] = [];
  private readonly sides = new Pane(el("div", { class: "sides" }));
  private readonly stay: HTMLButtonElement;
  private readonly go: HTMLButtonElement;
  private readonly list: Gallery;

  constructor(
    private readonly report: Report,
    actions: Actions,
    private readonly own: number,
    private readonly other: number | null,
  ) {
    this.stay = el("button", { type: "button", click: () => actions.confirm(this.images) });
    this.go = el("button", { type: "button", hidden: other === null, click: () => actions.other(this.images) });
    this.list = new Gallery(report, [], `In ${report.clusterName(own)}`);
    this.list.element.classList.add("asked");
    const answers = el("div", { class: "head" }, this.stay, this.go);
    this.element = el("section", { class: "block", "data-cluster": own }, this.sides.element, this.list.element, answers);
  }

  show(found: readonly number[]): void {
    const { report, own, other } = this;
    this.images = found;
    const shown = [own, other].map((id) => (id === null ? null : [report.clusterName(id), report.clusterOf(id)?.typical.slice(0, TYPICAL)]));
    this.sides.show(shown, () => [side(report, "In", own), other === null ? null : side(report, "or rather in", other, "?")]);
    const all = found.length === 1 ? "It belongs" : `All ${count(found.length)} belong`;
    this.stay.textContent = `${all} here`;
    this.go.textContent = `${all} in ${other === null ? "" : report.clusterName(other)}`;
    this.list.show(found);
  }
}

/** A cluster that images may be in, with its most typical ones to compare with. */
function side(report: Report, words: string, id: number, after = ""): HTMLElement {
  const typical = (report.clusterOf(id)?.typical ?? []).slice(0, TYPICAL);
  return el(
    "div",
    {},
    el("h2", {}, `${words} `, el("a", { href: `#/cluster/${id}` }, swatch(id), report.clusterName(id)), after),
    el("span", { class: "mosaic strip" }, typical.map((image) => picture(report, image))),
  );
}

/** Where all is answered: how to go on. */
function whatNext(report: Report, asked: () => void): HTMLElement[] {
  const folder = report.review.quotedFolder;
  const learn = [el("p", {}, "Let the run learn from what was said:"), el("pre", {}, `propos run --from ${folder}`)];
  if (report.review.saving === null) {
    return [...learn, el("p", {}, "Or take the corrections in (Download, below), and have the next images asked about:"), el("pre", {}, `propos report ${folder}`)];
  }
  const said = el("p", { class: "quiet", role: "status" });
  const click = async (): Promise<void> => {
    const found = await report.review.askOn();
    if (found === 0) said.textContent = "There is nothing more to ask.";
    else if (found === null) said.textContent = "The server did not answer.";
    else asked();
  };
  return [...learn, el("p", {}, el("button", { type: "button", class: "main", click: () => void click() }, "Ask about others")), said];
}
