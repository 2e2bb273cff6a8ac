import { el } from "../dom";
import { Gallery, columnsOf } from "../gallery";
import { type Report, imagesWhere } from "../report";
import type { Actions } from "../review/actions";
import type { Similar } from "../review/server";
import type { Screen } from "../shell";
import { similarTo } from "../similar";
import { sizeSlider } from "../size";
import { count, images } from "../format";

const TITLE = "More like this";
const BLOCK = 24; // images of a page, and more to fill its rows
const PROBABLE = 0.5; // from this probability on, an image probably belongs
const HIGH = 0.7; // of the window's height, at most, for the pictures: the buttons stand below them
const HOW = "The most similar images come first, whatever their cluster. Choose those that belong with the examples, or those that do not, and answer below: the answers order the rest.";
const BY_MAP = "Ordered by distance on the map, a rough measure of similarity. propos open orders by the embeddings, and by your answers.";
const SILENT = "The server did not respond.";

/** What the page shows, by the number of images that probably belong. */
function title(likely: number, shown: number, found: number): string {
  if (likely === 0) return "Probably no";
  if (likely < shown) return `Probably yes: the first ${count(likely)}`;
  return `Probably yes: ${count(likely)}${likely === found ? " or more" : ""}`;
}

/** The images most like some, and what a person says of them: a kind is collected page by page. */
export function likeScreen(report: Report, given: readonly number[], actions: Actions): Screen {
  const examples = given.filter((image) => image < report.count);
  if (examples.length === 0) {
    return { title: () => TITLE, content: el("div", { class: "screen" }, el("h1", {}, TITLE), el("p", { class: "lead" }, "Choose images on any screen and press F.")) };
  }
  const refused = new Set<number>(); // images that do not belong with the examples
  let into: number | null = null; // the cluster that collects
  let found: Similar = { rows: [], probabilities: null };
  let page: number[] = [];
  let most = BLOCK;
  let asked = 0;
  const heading = el("h2");
  const lead = el("p", { class: "lead" });
  const status = el("p", { class: "quiet", role: "status" });
  const shown = new Gallery(report, examples, "Examples");
  const list = new Gallery(report, [], "Most similar");
  const all = el("button", { type: "button", class: "main", click: () => answer((image) => !chosen().has(image)) });
  const some = el("button", { type: "button", click: () => answer((image) => chosen().has(image)) });
  const forget = el("button", { type: "button", class: "link", click: () => (refused.clear(), void ask()) });
  const content = el(
    "div",
    { class: "screen" },
    el("h1", {}, TITLE),
    lead,
    shown.element,
    el("p", { class: "quiet how" }, HOW),
    report.review.saving === null && el("p", { class: "quiet" }, BY_MAP),
    el("div", { class: "tools" }, sizeSlider(report.size)),
    el("section", { class: "block" }, heading, list.element, status, el("div", { class: "foot" }, all, some, forget)),
  );
  const resized = new ResizeObserver(() => fill());
  let unlisten = (): void => {};

  const chosen = (): ReadonlySet<number> => report.selection.images;
  /** The collecting cluster under the id that it has now. */
  const home = (): number | null => (into === null ? null : report.review.partOf(into));
  const isExample = new Set(examples);
  const collected = (image: number): boolean => isExample.has(image) || (home() !== null && report.cluster[image] === home() && report.review.confirmed(image));

  const decided = (image: number): boolean => isExample.has(image) || refused.has(image) || (home() !== null && report.review.isReviewed(image));

  /** Collect some of the page, and refuse the others. */
  function answer(belongs: (image: number) => boolean): void {
    const [yes, no] = [page.filter(belongs), page.filter((image) => !belongs(image))];
    const finish = (id: number | null): void => {
      into = id;
      for (const image of no) refused.add(image);
      report.selection.clear();
      show(); // until the classifier has answered
      void ask();
    };
    if (yes.length === 0) return finish(into);
    const apart = home() === null ? [...examples, ...yes] : yes;
    if (home() === null) actions.move(apart, finish);
    else {
      actions.put(apart, home() as number);
      finish(into);
    }
  }

  /** Ask which images come next: after answers, those that no answer or review has decided. */
  async function ask(): Promise<void> {
    const turn = ++asked;
    status.textContent = "Searching …";
    const begun = home() !== null;
    const yes = begun ? [...new Set([...examples, ...imagesWhere(report, collected)])] : examples;
    const others = begun ? imagesWhere(report, (image) => report.review.isReviewed(image) && !collected(image) && !refused.has(image)) : [];
    const answered = await similarTo(report, { yes, no: [...refused, ...others], skip: decided });
    if (turn !== asked) return; // another question was asked meanwhile
    status.textContent = answered === null ? SILENT : "";
    found = answered ?? { rows: [], probabilities: null };
    show();
  }

  function show(): void {
    const { probabilities } = found;
    const rows = found.rows.filter((image) => !decided(image));
    const likely = found.rows.filter((image, place) => !decided(image) && (probabilities?.[place] ?? 1) >= PROBABLE).length;
    page = rows.slice(0, most);
    heading.textContent = page.length === 0 ? "Nothing left" : probabilities === null ? "Most similar" : title(likely, page.length, rows.length);
    list.show(page);
    const id = home();
    const gathered = id === null ? 0 : imagesWhere(report, collected).length;
    lead.textContent = id === null ? `Like ${images(examples.length)}.` : `${images(gathered)} collected in ${report.clusterName(id)}.`;
    label();
  }

  function label(): void {
    const number = page.filter((image) => chosen().has(image)).length;
    const where = home() === null ? "with the examples …" : `in ${report.clusterName(home() as number)}`;
    all.hidden = some.hidden = page.length === 0;
    all.disabled = number === page.length;
    all.textContent = number === 0 ? `All ${count(page.length)} belong ${where}` : `All but the ${count(number)} chosen belong ${where}`;
    some.textContent = number === 0 ? "None of them" : `Only the ${count(number)} chosen ${number === 1 ? "belongs" : "belong"} ${where}`;
    forget.hidden = refused.size === 0;
    forget.textContent = `Show the ${count(refused.size)} refused again`;
  }

  /** Show whole rows, as many as the window has room for. */
  function fill(): void {
    const width = list.element.clientWidth;
    if (width === 0) return;
    const { columns, pitch } = columnsOf(width, report.size.value);
    const rows = Math.min(Math.ceil(BLOCK / columns), Math.max(1, Math.floor((HIGH * innerHeight) / pitch)));
    if (most === rows * columns) return;
    most = rows * columns;
    show();
  }

  function corrected(): boolean {
    shown.show();
    show();
    void ask();
    return true;
  }

  function entered(): void {
    fill();
    resized.observe(list.element);
    const [one, other] = [report.size.listen(fill), report.selection.listen(label)];
    unlisten = () => (one(), other());
    void ask();
  }

  function left(): void {
    resized.disconnect();
    unlisten();
  }

  show();
  return { title: () => TITLE, content, corrected, shown: entered, left };
}
