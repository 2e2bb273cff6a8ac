import { el } from "../dom";
import { Gallery } from "../gallery";
import { type Crossing, type Wording, countCells, isLarge, matrix } from "../matrix";
import { type Against, type Report, imagesWhere } from "../report";
import { JUNK } from "../review/replay";
import type { Screen } from "../shell";
import { swatch } from "../swatch";
import { count, fixed, images, percent } from "../words";

const NONE = "propos report RUN --against OTHER writes this page with another run of the same images beside it.";
const WORDS = "Rows are the other run's clusters, columns those of this one; clusters that match lie on the diagonal. Choose a cell to see its images.";
const LARGE_WORDS = "Each cluster of the other run with those here that hold most of its images: 23 in 5 are 23 images in cluster 5. Choose one to see them.";
const MOST_MOVES = 12;
const MOST_SHOWN = 30; // images of a move; its cell has them all

interface Move {
  from: number; // a place in the other run's names
  to: number; // the id of a cluster here
  images: number[];
}

/** Another run of the same images beside this one: which clusters match, and who moved where. */
export function againstScreen(report: Report, row: number | null, cluster: number | null): Screen {
  const { against } = report;
  if (against === null) {
    const title = "Nothing to compare with";
    return { title: () => title, content: el("div", { class: "screen" }, el("h1", {}, title), el("p", {}, NONE)) };
  }
  const title = `Beside ${against.name}`;
  const crossing = crossed(report, against);
  const moves = movesOf(report, against);
  const cell = row === null || cluster === null ? null : opened(report, against, row, cluster);
  const content = el(
    "div",
    { class: "screen" },
    el("h1", {}, title),
    el("p", { class: "lead" }, sentence(report, against, moves)),
    el("h2", {}, "Who is where"),
    el("p", { class: "quiet" }, isLarge(crossing) ? LARGE_WORDS : WORDS),
    matrix(report, crossing, { row, cluster }, wording(against)),
    cell,
    who(report, against, moves),
  );
  return { title: () => title, content, shown: () => cell?.querySelector("h2")?.scrollIntoView({ block: "center" }) };
}

function wording({ name }: Against): Wording {
  return {
    corner: "there ↓ here →",
    caption: `Images by cluster of ${name} and cluster here`,
    largest: `Of each cluster of ${name} the largest here`,
    address: (row, cluster) => `#/against/${row}/${cluster}`,
    cell: (found, there, here) => `${images(found)} of ${there} there, in ${here} here`,
  };
}

/** The matrix as the clusters are now: those that match in the same order, then the others. */
function crossed(report: Report, against: Against): Crossing {
  const matched = against.pairs.map(([, id]) => id).filter((id) => report.byId.has(id));
  const columns = [...matched, ...report.clusters.map(({ id }) => id).filter((id) => !matched.includes(id))];
  const { names, of, rows } = against;
  return { names, of, rows, columns, counts: countCells(report, of, rows, columns) };
}

/** The images that are not in the cluster that matches theirs in the other run, the commonest moves first. */
function movesOf(report: Report, against: Against): Move[] {
  const partner = new Map(against.pairs);
  const moves = new Map<string, Move>();
  for (let image = 0; image < report.count; image++) {
    const [from, to] = [against.of[image] as number, report.cluster[image] as number];
    if (partner.get(from) === to || (against.names[from] === "Junk" && to === JUNK)) continue;
    const key = `${from} ${to}`;
    const move = moves.get(key) ?? { from, to, images: [] };
    move.images.push(image);
    moves.set(key, move);
  }
  return [...moves.values()].sort((one, other) => other.images.length - one.images.length);
}

function sentence(report: Report, against: Against, moves: Move[]): string {
  const moved = moves.reduce((sum, { images }) => sum + images.length, 0);
  const stayed = report.count - moved;
  const share = percent(stayed / report.count, 1);
  return (
    `${images(stayed)} (${share}) are in clusters that match, ${count(moved)} in others. ` +
    `The other run is ${against.made}; NMI between the two is ${fixed(against.nmi)}.`
  );
}

function who(report: Report, against: Against, moves: Move[]): HTMLElement {
  const heading = el("h2", {}, "Who moved");
  if (moves.length === 0) return el("section", {}, heading, el("p", { class: "quiet" }, "Nobody: the two runs agree on every image."));
  const rest = moves.slice(MOST_MOVES);
  const left = rest.reduce((sum, { images }) => sum + images.length, 0);
  return el(
    "section",
    { class: "moves" },
    heading,
    el("p", { class: "quiet" }, "The commonest moves first; of each, the images that are least sure here come first."),
    moves.slice(0, MOST_MOVES).map((move) => moveOf(report, against, move)),
    rest.length > 0 && el("p", { class: "quiet" }, `and ${images(left)} in ${count(rest.length)} rarer moves, in the cells of the matrix`),
  );
}

function moveOf(report: Report, against: Against, { from, to, images: moved }: Move): HTMLElement {
  const [there, here] = [against.names[from] ?? "", report.clusterName(to)];
  const title = `${there} there, ${here} here`;
  const sorted = [...moved].sort((one, other) => (report.confidence[one] ?? 0) - (report.confidence[other] ?? 0));
  return el(
    "section",
    { class: "move" },
    el("h3", {}, there, " → ", swatch(to), el("a", { href: `#/cluster/${to}` }, here), " ", el("span", { class: "badge" }, count(moved.length))),
    new Gallery(report, sorted.slice(0, MOST_SHOWN), title).element,
    moved.length > MOST_SHOWN && el("p", {}, el("a", { href: `#/against/${from}/${to}` }, `All ${images(moved.length)}`)),
  );
}

function opened(report: Report, against: Against, row: number, cluster: number): HTMLElement {
  const found = imagesWhere(report, (image) => against.of[image] === row && report.cluster[image] === cluster);
  const title = `${against.names[row] ?? ""} in ${against.name}, ${report.clusterName(cluster)} here`;
  return el("section", { class: "cell" }, el("h2", {}, title), el("p", { class: "quiet" }, images(found.length)), new Gallery(report, found, title).element);
}
