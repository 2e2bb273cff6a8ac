import { Pane, arrange, el } from "../dom";
import { Gallery } from "../gallery";
import { type Crossing, OpenCell, type Wording, countCells, isLarge, matrix } from "../matrix";
import type { Comparison, Report } from "../report";
import { JUNK } from "../review/replay";
import type { Screen } from "../shell";
import { swatch } from "../swatch";
import { count, fixed, images, percent } from "../format";

const NONE = "propos report RUN --against OTHER writes this page with another run of the same images next to it.";
const WORDS = "Rows are the other run's clusters, columns those of this one; matching clusters lie on the diagonal. Choose a cell to see its images.";
const LARGE_WORDS = "Each cluster of the other run with the clusters here that contain most of its images: 23 in 5 means 23 images in cluster 5. Choose one to see them.";
const NONE_MOVED = "None: the two runs agree on every image.";
const MOST_MOVES = 12;
const MOST_SHOWN = 30; // images of a move; its cell has them all

interface Move {
  from: number; // a place in the other run's names
  to: number; // the id of a cluster here
  images: number[];
}

/** Another run of the same images next to this one: matching clusters, and images that moved. */
export function comparisonScreen(report: Report, row: number | null, cluster: number | null): Screen {
  const { comparison } = report;
  if (comparison === null) {
    const title = "Nothing to compare with";
    return { title: () => title, content: el("div", { class: "screen" }, el("h1", {}, title), el("p", {}, NONE)) };
  }
  return compared(report, comparison, row, cluster);
}

function compared(report: Report, comparison: Comparison, row: number | null, cluster: number | null): Screen {
  const title = `Compared with ${comparison.name}`;
  const lead = el("p", { class: "lead" });
  const words = el("p", { class: "quiet" });
  const table = new Pane(el("div"));
  const who = new Moves(report, comparison);
  const cell = row === null || cluster === null ? null : new OpenCell(report, comparison.of, row, cluster, (here) => `${comparison.names[row] ?? ""} in ${comparison.name}, ${here} here`);

  function corrected(): boolean {
    const [crossing, moves] = [crossed(report, comparison), movesOf(report, comparison)];
    lead.textContent = sentence(report, comparison, moves);
    words.textContent = isLarge(crossing) ? LARGE_WORDS : WORDS;
    table.show([crossing.columns, crossing.counts, report.clusters.map(({ name }) => name)], () => [matrix(report, crossing, { row, cluster }, wording(comparison))]);
    cell?.show();
    who.show(moves);
    return true;
  }

  corrected();
  const content = el("div", { class: "screen" }, el("h1", {}, title), lead, el("h2", {}, "Clusters of both runs"), words, table.element, cell?.element ?? null, who.element);
  return { title: () => title, content, corrected, shown: () => cell?.seek() };
}

function wording({ name }: Comparison): Wording {
  return {
    corner: "there ↓ here →",
    caption: `Images by cluster of ${name} and cluster here`,
    largest: `The largest clusters here of each cluster of ${name}`,
    address: (row, cluster) => `#/comparison/${row}/${cluster}`,
    cell: (found, there, here) => `${images(found)} of ${there} there, in ${here} here`,
  };
}

/** The matrix as the clusters are now: those that match in the same order, then the others. */
function crossed(report: Report, comparison: Comparison): Crossing {
  const matched = comparison.pairs.map(([, id]) => id).filter((id) => report.byId.has(id));
  const columns = [...matched, ...report.clusters.map(({ id }) => id).filter((id) => !matched.includes(id))];
  const { names, of, rows } = comparison;
  return { names, of, rows, columns, counts: countCells(report, of, rows, columns) };
}

/** The images that are not in the cluster that matches theirs in the other run, the commonest moves first. */
function movesOf(report: Report, comparison: Comparison): Move[] {
  const partner = new Map(comparison.pairs);
  const moves = new Map<string, Move>();
  for (let image = 0; image < report.count; image++) {
    const [from, to] = [comparison.of[image] as number, report.cluster[image] as number];
    if (partner.get(from) === to || (comparison.names[from] === "Junk" && to === JUNK)) continue;
    const key = `${from} ${to}`;
    const move = moves.get(key) ?? { from, to, images: [] };
    move.images.push(image);
    moves.set(key, move);
  }
  return [...moves.values()].sort((one, other) => other.images.length - one.images.length);
}

function sentence(report: Report, comparison: Comparison, moves: Move[]): string {
  const moved = moves.reduce((sum, { images }) => sum + images.length, 0);
  const stayed = report.count - moved;
  const share = percent(stayed / report.count, 1);
  return (
    `${images(stayed)} (${share}) are in clusters that match, ${count(moved)} in others. ` +
    `The other run: ${comparison.made}. NMI between the two is ${fixed(comparison.nmi)}.`
  );
}

/** The images that moved, the commonest moves first. */
class Moves {
  readonly element: HTMLElement;
  private readonly words = el("p", { class: "quiet" });
  private readonly list = el("div");
  private readonly rest = el("p", { class: "quiet" });
  private readonly made = new Map<string, MoveSection>();

  constructor(
    private readonly report: Report,
    private readonly comparison: Comparison,
  ) {
    this.element = el("section", { class: "moves" }, el("h2", {}, "Images that moved"), this.words, this.list, this.rest);
  }

  show(moves: Move[]): void {
    const rest = moves.slice(MOST_MOVES);
    this.words.textContent = moves.length === 0 ? NONE_MOVED : "The commonest moves first; of each, the images that are least confident here come first.";
    arrange(this.list, moves.slice(0, MOST_MOVES).map((move) => this.section(move)));
    this.rest.hidden = rest.length === 0;
    this.rest.textContent = `and ${images(rest.reduce((sum, move) => sum + move.images.length, 0))} in ${count(rest.length)} rarer moves, in the cells of the matrix`;
  }

  private section(move: Move): HTMLElement {
    const key = `${move.from} ${move.to}`;
    const section = this.made.get(key) ?? new MoveSection(this.report, this.comparison, move);
    this.made.set(key, section);
    section.show(move);
    return section.element;
  }
}

/** The images of one move. */
class MoveSection {
  readonly element: HTMLElement;
  private readonly heading = new Pane(el("h3"));
  private readonly all: HTMLAnchorElement;
  private readonly list: Gallery;

  constructor(
    private readonly report: Report,
    private readonly comparison: Comparison,
    { from, to }: Move,
  ) {
    this.all = el("a", { href: `#/comparison/${from}/${to}` });
    this.list = new Gallery(report, [], `${comparison.names[from] ?? ""} there, ${report.clusterName(to)} here`);
    this.element = el("section", { class: "move" }, this.heading.element, this.list.element, el("p", {}, this.all));
  }

  show({ from, to, images: moved }: Move): void {
    const [there, here] = [this.comparison.names[from] ?? "", this.report.clusterName(to)];
    const badge = (): HTMLElement => el("span", { class: "badge" }, count(moved.length));
    this.heading.show([here, moved.length], () => [there, " → ", swatch(to), el("a", { href: `#/cluster/${to}` }, here), " ", badge()]);
    const { confidence } = this.report;
    const sorted = [...moved].sort((one, other) => (confidence[one] ?? 0) - (confidence[other] ?? 0));
    this.list.show(sorted.slice(0, MOST_SHOWN));
    this.all.hidden = moved.length <= MOST_SHOWN;
    this.all.textContent = `All ${images(moved.length)}`;
  }
}
