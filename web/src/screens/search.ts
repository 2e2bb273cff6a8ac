import { el } from "../dom";
import { Gallery } from "../gallery";
import type { Report } from "../report";
import type { Screen } from "../shell";
import { sizeSlider } from "../size";
import { images } from "../format";

const HOW = "Describe what you are looking for: the images most like your words come first, whatever their cluster. Choose images, then move them (M) or ask for more like them (F).";
const LONGEST = 200; // letters
const FOUND = 240; // images

/** Whether the server finds images by a text. */
export const findsTexts = (): boolean => document.documentElement.dataset["reads"] !== undefined;

/** The images most like a text. */
export function searchScreen(report: Report): Screen {
  const box = el("input", { type: "search", id: "words", maxlength: LONGEST, placeholder: "a red car", autocomplete: "off" });
  const status = el("p", { class: "quiet", role: "status" });
  const list = new Gallery(report, [], "Found");
  const form = el("form", { class: "tools words", submit: (event: Event) => (event.preventDefault(), void search()) }, el("label", { for: "words" }, "Show"), box, el("button", { type: "submit", class: "main" }, "Search"));
  const content = el("div", { class: "screen" }, el("h1", {}, "Search"), el("p", { class: "quiet how" }, HOW), form, el("div", { class: "tools" }, sizeSlider(report.size)), status, list.element);
  let asked = 0;

  async function search(): Promise<void> {
    const words = box.value.trim();
    const turn = ++asked;
    if (words === "") return box.focus();
    status.textContent = "Searching …";
    const found = await report.review.byText(words, Math.min(FOUND, report.count));
    if (turn !== asked) return; // another search was begun meanwhile
    status.textContent = found === null ? "The server did not find anything: see the terminal." : `The ${images(found.length)} most like "${words}", the best first.`;
    list.show(found ?? []);
  }

  return {
    title: () => "Search",
    content,
    corrected: () => (list.show(), true),
    shown: () => box.focus({ preventScroll: true }),
  };
}
