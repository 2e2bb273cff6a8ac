import { Pane, el } from "./dom";
import { showExport } from "./export";
import type { Report } from "./report";
import { reviewedCount } from "./review/texts";
import { openProblems, openQuestions, problemText, total } from "./todo";
import { count, images } from "./format";
import { studioAddress } from "./studio/address";

interface Step {
  screen: string;
  title: string;
  left: number;
  todo: string;
  why: string;
  done: string;
}

/** The steps of a review in order, with reasons. */
export class StartHere {
  readonly element = el("section", { class: "start", "aria-labelledby": "start" });
  private readonly pane = new Pane(this.element);

  constructor(private readonly report: Report) {
    this.show();
  }

  show(): void {
    const steps = stepsOf(this.report);
    const learn = studioAddress("");
    const next = steps.findIndex(({ left }) => left > 0);
    this.pane.show(steps, () => [
      el("h2", { id: "start" }, next < 0 ? "All done" : "Start here"),
      el(
        "ol",
        {},
        steps.map((step, place) => entry(step, place === next)),
        el(
          "li",
          {},
          el("button", { type: "button", class: next < 0 ? "main" : null, click: () => showExport(this.report) }, "Export"),
          el("p", {}, "Export the labels."),
          learn === null ? null : el("p", {}, "Or ", el("a", { href: learn }, "learn"), " from the corrections."),
          el("p", { class: "quiet why" }, "At any time, with the corrections made so far."),
        ),
      ),
    ]);
  }
}

function stepsOf(report: Report): Step[] {
  const problems = openProblems(report);
  const questions = openQuestions(report).length;
  const { seen, all } = reviewedCount(report);
  return [
    {
      screen: "problems",
      title: "Problems",
      left: total(problems),
      todo: `${problemText(problems)}.`,
      why: "First: missing and duplicate images distort the clusters.",
      done: "No unreadable files or duplicates.",
    },
    {
      screen: "questions",
      title: "Questions",
      left: questions,
      todo: `${images(questions)} to check.`,
      why: "Next: each check also decides for similar images, so less is left to review.",
      done: "Nothing to check.",
    },
    {
      screen: "review",
      title: "Review",
      left: all - seen,
      todo: `${count(all - seen)} of ${images(all)} not reviewed.`,
      why: "Last: the least confident images come first, so you can stop when you find no more mistakes.",
      done: "Every image has been reviewed.",
    },
  ];
}

function entry({ screen, title, left, todo, why, done }: Step, next: boolean): HTMLElement {
  const link = el("a", { class: next ? "button main" : "button", href: `#/${screen}` }, title);
  if (left === 0) return el("li", { class: "done" }, link, el("p", { class: "quiet" }, "✓ ", done));
  return el("li", { "aria-current": next ? "step" : null }, link, el("p", {}, todo), el("p", { class: "quiet why" }, why));
}
