import { arrange, el } from "../dom";
import { Gallery, columnsOf } from "../gallery";
import { type Report, imagesWhere } from "../report";
import type { Actions } from "../review/actions";
import { cohesion, reviewedCount, reviewedText } from "../review/texts";
import type { Screen } from "../shell";
import { sizeSlider } from "../size";
import { swatch } from "../swatch";
import { count, fixed, images } from "../format";

const BLOCK = 24; // least confident images that order a cluster; at least as many are shown where there is room
const HIGH = 0.7; // of the window's height, at most, for the pictures of a block: its buttons stand below them
const CLUSTERS = 8; // that are shown at once
const WORDS = "Clusters with the least confident images come first. Each shows its least confident images. Choose what does not belong and move it (M) or mark it as junk (J), then confirm the rest. Clusters stay in this order while you work.";
const DONE = "Every image has been reviewed.";

interface Doubt {
  id: number;
  left: number[]; // images that are not reviewed, the least confident first
  confidence: number; // the mean of the first of them
}

/** What to look at next, worst first. */
export function reviewScreen(report: Report, actions: Actions): Screen {
  const lead = el("p", { class: "lead" });
  const done = el("span");
  const words = el("p", { class: "quiet" });
  const list = el("div");
  const rest = el("p", { class: "quiet" });
  const blocks = new Map<number, Block>();
  let most = BLOCK; // images that are shown of a cluster at once
  let order: number[] = []; // of the clusters when the screen was entered, so that none moves during the work
  const again = el("button", { type: "button", click: () => sort() }, "Sort again, worst first");
  const meter = el("span", { class: "meter large", "aria-hidden": "true" }, done);
  const tools = el("div", { class: "tools" }, sizeSlider(report.size));
  const content = el("div", { class: "screen" }, el("h1", {}, "Least confident first"), lead, meter, words, tools, list, rest, again);
  const resized = new ResizeObserver(() => fill());
  let unlisten = (): void => {};

  function corrected(): boolean {
    const { seen, all } = reviewedCount(report);
    const worst = worstFirst(report);
    const doubts = inOrder(worst);
    again.hidden = doubts.every(({ id }, place) => id === worst[place]?.id);
    lead.textContent = `${reviewedText(seen, all)}.`;
    done.style.width = `${all === 0 ? 0 : (100 * seen) / all}%`;
    words.textContent = doubts.length === 0 ? DONE : WORDS;
    tools.hidden = doubts.length === 0;
    const shown = doubts.slice(0, CLUSTERS).map((doubt) => {
      const block = blocks.get(doubt.id) ?? new Block(report, actions, doubt.id);
      blocks.set(doubt.id, block);
      block.show(doubt, most);
      return block.element;
    });
    arrange(list, shown);
    rest.hidden = doubts.length <= CLUSTERS;
    const more = doubts.length - CLUSTERS;
    rest.textContent = more === 1 ? "1 more cluster comes when these are done." : `${count(more)} more clusters come when these are done.`;
    return true;
  }

  /** In the order of before; clusters that were in none come last. */
  function inOrder(worst: Doubt[]): Doubt[] {
    const [known, byId] = [new Set(order), new Map(worst.map((doubt) => [doubt.id, doubt]))];
    order.push(...worst.map(({ id }) => id).filter((id) => !known.has(id)));
    return order.flatMap((id) => byId.get(id) ?? []);
  }

  function sort(): void {
    order = [];
    corrected();
    window.scrollTo(0, 0);
  }

  /** Show whole rows, as many as the window has room for. */
  function fill(): void {
    const { columns, pitch } = columnsOf(list.clientWidth, report.size.value);
    const rows = Math.min(Math.ceil(BLOCK / columns), Math.max(1, Math.floor((HIGH * innerHeight) / pitch)));
    if (most === rows * columns || list.clientWidth === 0) return;
    most = rows * columns;
    corrected();
  }

  function shown(): void {
    fill();
    resized.observe(list);
    unlisten = report.size.listen(fill);
  }

  function left(): void {
    resized.disconnect();
    unlisten();
  }

  corrected();
  return { title: () => "Review", content, corrected, shown, left };
}

/** Clusters with images that are not reviewed. */
function worstFirst(report: Report): Doubt[] {
  const left = new Map<number, number[]>();
  for (const image of imagesWhere(report, (each) => !report.review.isReviewed(each), report.doubtfulFirst())) {
    const id = report.cluster[image] as number;
    const own = left.get(id);
    if (own === undefined) left.set(id, [image]);
    else own.push(image);
  }
  const doubts = [...left].map(([id, own]) => {
    const first = own.slice(0, BLOCK);
    return { id, left: own, confidence: first.reduce((sum, image) => sum + (report.confidence[image] as number), 0) / first.length };
  });
  return doubts.sort((a, b) => a.confidence - b.confidence);
}

/** The least confident images of one cluster. */
class Block {
  readonly element: HTMLElement;
  private left: number[] = [];
  private most = BLOCK;
  private readonly name = el("span");
  private readonly facts = el("p", { class: "quiet" });
  private readonly these: HTMLButtonElement;
  private readonly all: HTMLButtonElement;
  private readonly list: Gallery;

  constructor(
    private readonly report: Report,
    actions: Actions,
    private readonly id: number,
  ) {
    this.these = el("button", { type: "button", class: "main", click: () => actions.confirm(this.left.slice(0, this.most)) });
    this.all = el("button", { type: "button", class: "link", click: () => actions.confirmAll(id, this.left, this.most) });
    this.list = new Gallery(report, [], `The least confident of ${report.clusterName(id)}`);
    const heading = el("h2", {}, el("a", { href: `#/cluster/${id}` }, swatch(id), this.name));
    const head = el("div", { class: "head" }, heading, this.facts);
    const foot = el("div", { class: "foot" }, this.these, this.all);
    this.element = el("section", { class: "block", "data-cluster": id }, head, this.list.element, foot);
  }

  show({ left, confidence }: Doubt, most: number): void {
    [this.left, this.most] = [left, most];
    const seen = this.report.review.seenByCluster.get(this.id) ?? 0;
    const shown = left.slice(0, most);
    this.name.textContent = this.report.clusterName(this.id);
    const cluster = this.report.clusterOf(this.id);
    const word = cluster === undefined ? "" : `${cohesion(cluster).word}; `;
    this.facts.textContent = `${word}${reviewedText(seen, seen + left.length)}; mean confidence ${fixed(confidence, 2)} among the least confident`;
    this.these.textContent = `Confirm these ${count(shown.length)}`;
    this.all.textContent = `Confirm all ${images(left.length)} left …`;
    this.all.hidden = left.length === shown.length;
    this.list.show(shown);
  }
}
