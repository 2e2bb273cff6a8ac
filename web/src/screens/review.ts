import { el } from "../dom";
import { gallery } from "../gallery";
import { type Report, imagesWhere } from "../report";
import type { Actions } from "../review/actions";
import { lookedAt, lookedAtByCluster, seenWords } from "../review/words";
import type { Screen } from "../shell";
import { swatch } from "../swatch";
import { count, fixed, images } from "../words";

const BLOCK = 24; // images that are shown of a cluster at once
const CLUSTERS = 8; // that are shown at once
const WORDS = "The clusters that are least sure of their images come first, and of each those it is least sure of. Choose what does not belong and move it (M) or set it aside (J), then confirm the rest.";
const DONE = "Every image has been looked at.";

interface Doubt {
  id: number;
  left: number[]; // images nobody has looked at, the least sure first
  sure: number; // the mean confidence of the block that is shown
}

/** What to look at next, worst first. */
export function reviewScreen(report: Report, actions: Actions): Screen {
  const { seen, all } = lookedAt(report);
  const doubts = worstFirst(report);
  const meter = el("span", { class: "meter large", "aria-hidden": "true" }, el("span"));
  (meter.firstChild as HTMLElement).style.width = `${all === 0 ? 0 : (100 * seen) / all}%`;
  const rest = doubts.length - CLUSTERS;
  const content = el(
    "div",
    { class: "screen" },
    el("h1", {}, "Worst first"),
    el("p", { class: "lead" }, `${seenWords(seen, all)}.`),
    meter,
    el("p", { class: "quiet" }, doubts.length === 0 ? DONE : WORDS),
    ...doubts.slice(0, CLUSTERS).map((doubt) => block(report, actions, doubt)),
    rest > 0 && el("p", { class: "quiet" }, `${count(rest)} more clusters come when these are done.`),
  );
  return { title: "Review", content };
}

/** Clusters with images that nobody has looked at. */
function worstFirst(report: Report): Doubt[] {
  const left = new Map<number, number[]>();
  for (const image of imagesWhere(report, (each) => !report.review.lookedAt(each))) {
    const id = report.cluster[image] as number;
    const own = left.get(id);
    if (own === undefined) left.set(id, [image]);
    else own.push(image);
  }
  const sureOf = (image: number): number => report.confidence[image] as number;
  const doubts = [...left].map(([id, own]) => {
    own.sort((a, b) => sureOf(a) - sureOf(b));
    const shown = own.slice(0, BLOCK);
    return { id, left: own, sure: shown.reduce((sum, image) => sum + sureOf(image), 0) / shown.length };
  });
  return doubts.sort((a, b) => a.sure - b.sure);
}

function block(report: Report, actions: Actions, { id, left, sure }: Doubt): HTMLElement {
  const name = report.clusterName(id);
  const shown = left.slice(0, BLOCK);
  const seen = lookedAtByCluster(report).get(id) ?? 0;
  const confirm = (): void => actions.confirm(shown);
  return el(
    "section",
    { class: "block", "data-cluster": id },
    el(
      "div",
      { class: "head" },
      el("h2", {}, el("a", { href: `#/cluster/${id}` }, swatch(id), name)),
      el("p", { class: "quiet" }, `${seenWords(seen, seen + left.length)}; mean confidence of these ${fixed(sure, 2)}`),
      el("button", { type: "button", click: confirm }, `Confirm these ${count(shown.length)}`),
      left.length > shown.length && el("button", { type: "button", click: () => actions.confirm(left) }, `Confirm all ${images(left.length)} left`),
    ),
    gallery(report, shown, `The least sure of ${name}`),
  );
}
