import { Pane, el } from "../dom";
import { Gallery } from "../gallery";
import type { Report } from "../report";
import type { Actions } from "../review/actions";
import { AUDITED, JUNK, MOVED, WRONG } from "../review/replay";
import type { Screen } from "../shell";
import { swatch } from "../swatch";
import { picture } from "../thumb";
import { count, images } from "../format";

const FIRST = 100; // images that are drawn at once
const TYPICAL = 8;
const WORDS = "Images drawn at random: is the label right? Y: yes. N: no. M: no, it belongs to another cluster. J: no, it is junk. Answer all, also those that are hard.";

/** One drawn image after the other, for a person to say whether its label is right. */
export function auditScreen(report: Report, actions: Actions): Screen {
  const lead = el("p", { class: "lead" });
  const words = el("p", { class: "quiet" }, WORDS);
  const label = new Pane(el("h2", {}));
  const gallery = new Gallery(report, [], "The image to check");
  const examples = new Pane(el("div", {}));
  const answers = el(
    "div",
    { class: "head" },
    el("button", { type: "button", class: "main", click: () => actions.judge(openImages(report).slice(0, 1), true) }, "Yes, it is right"),
    el("button", { type: "button", click: () => actions.judge(openImages(report).slice(0, 1), false) }, "No, it is wrong"),
    el("button", { type: "button", click: () => actions.move(openImages(report).slice(0, 1)) }, "Move …"),
  );
  const asked = el("section", { class: "block audit" }, label.element, gallery.element, answers, examples.element);
  const said = new Pane(el("div", { role: "status" }));
  const more = el("button", { type: "button", click: () => void draw() });
  const content = el("div", { class: "screen" }, el("h1", {}, "Audit"), lead, words, asked, said.element, more);

  async function draw(): Promise<void> {
    await report.review.audit(report.audit.drawn.length + FIRST);
    corrected();
    focus();
  }

  /** Show the next image, and what the answers say once all are given and saved. */
  function corrected(): boolean {
    const [open, drawn] = [openImages(report), report.audit.drawn.length];
    const [next] = open;
    lead.textContent = drawn === 0 ? "How many labels are right? Check some images that are drawn at random." : `${count(drawn - open.length)} of ${images(drawn)} checked.`;
    asked.hidden = words.hidden = next === undefined;
    gallery.show(next === undefined ? [] : [next]);
    label.show(next, () => (next === undefined ? [] : question(report, next)));
    examples.show(next, () => (next === undefined ? [] : typical(report, next)));
    more.hidden = next !== undefined || report.review.saving === null || drawn >= report.count;
    more.textContent = drawn === 0 ? `Draw ${images(Math.min(FIRST, report.count))}` : `Draw ${count(FIRST)} more`;
    if (next === undefined) void state();
    else said.show(null, () => []);
    return true;
  }

  async function state(): Promise<void> {
    const served = report.review.unsaved.length === 0 && (await report.review.audit());
    const command = `propos audit ${report.review.folder}`;
    const lines = served ? report.audit.lines : [];
    said.show([served, ...lines], () => (served ? lines.map((line) => el("p", {}, line.trim())) : [el("p", {}, "This command draws images, and says how many labels are right:"), el("pre", {}, command)]));
  }

  const focus = (): void => content.querySelector<HTMLElement>(".thumb")?.focus({ preventScroll: true });
  const stop = report.review.listen(() => openImages(report).length === 0 && void state()); // also when all is saved
  corrected();
  return { title: () => "Audit", content, corrected, shown: focus, left: stop };
}

/** The question about an image: its cluster. */
function question(report: Report, image: number): (Node | string)[] {
  const id = report.cluster[image] as number;
  return ["Is this ", swatch(id), report.clusterName(id), "?"];
}

/** Typical images of an image's cluster, to compare it with. */
function typical(report: Report, image: number): Node[] {
  const id = report.cluster[image] as number;
  const others = (report.clusterOf(id)?.typical ?? []).filter((each) => each !== image).slice(0, TYPICAL);
  if (others.length === 0) return [];
  return [el("p", { class: "quiet" }, `Typical images of ${report.clusterName(id)}:`), el("div", { class: "mosaic strip" }, others.map((each) => picture(report, each)))];
}

/** The drawn images without an answer; `Audit.answers` of `propos.runs.audit` decides in the same way. */
export function openImages({ audit, review, cluster }: Report): number[] {
  return audit.drawn
    .filter(([image, drawn]) => {
      const [same, how] = [review.partOf(drawn) === cluster[image], review.howOf(image)];
      return same ? how !== AUDITED && how !== MOVED && how !== WRONG : cluster[image] !== JUNK && how !== MOVED;
    })
    .map(([image]) => image);
}
