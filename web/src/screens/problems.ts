import { el } from "../dom";
import { Gallery } from "../gallery";
import type { Report } from "../report";
import type { Actions } from "../review/actions";
import type { Screen } from "../shell";
import { sizeSlider } from "../size";
import { count, counted, images } from "../format";

const MOST_GROUPS = 50;
/** The faults of single images, as `src/propos/review/report/faults.py` finds them. */
const FAULTS: [kind: string, title: string, words: string][] = [
  ["black", "Black images", "Nothing can be seen in them."],
  ["dark", "Dark images", "Much darker than the others, also in their lightest parts."],
  ["bright", "Bright images", "Much lighter than the others, also in their darkest parts."],
  ["blurred", "Blurred images", "Much less sharp than the others."],
  ["flat", "Screenshots or documents", "Large parts have exactly one colour."],
  ["grey", "Images without colour", "The others have colours."],
  ["aspect", "Unusual shapes", "Much wider or taller than the others."],
  ["tiny", "Tiny images", "Less than a quarter of the usual size."],
];

type Lister = (images: number[], label: string) => HTMLElement;

/** Problems to check before trusting the clusters. */
export function problemsScreen(report: Report, actions: Actions): Screen {
  const { problems } = report;
  const { counts } = problems;
  const pictures = counts.exact + counts.near + counts.bursts + counts.outliers + FAULTS.reduce((sum, [kind]) => sum + (counts[kind] ?? 0), 0);
  const lists: Gallery[] = [];
  const gallery: Lister = (found, label) => {
    const list = new Gallery(report, found, label);
    lists.push(list);
    return list.element;
  };
  const content = el(
    "div",
    { class: "screen" },
    el("h1", {}, "Possible problems"),
    el("p", { class: "lead" }, "Missing and duplicate images distort the clusters. Mark copies as junk (J), or confirm them (C)."),
    pictures > 0 && el("div", { class: "tools" }, sizeSlider(report.size)),
    part("Unreadable files", "The run skipped them: repair or remove them, and run again.", counts.unreadable, () => unreadable(problems.unreadable)),
    part("Exact duplicates", "Groups of images with the same pixels, or files with the same bytes.", counts.exact, repeated(gallery, problems.exact)),
    part("Near duplicates", "Groups of almost identical images: copies that were saved again, resized or made lighter.", counts.near, repeated(gallery, problems.near)),
    counts.bursts > 0 && part("Bursts", "Groups of similar photographs that one camera took at different times: no copies.", counts.bursts, repeated(gallery, problems.bursts)),
    FAULTS.filter(([kind]) => kind in problems.faults).map(([kind, title, words]) => {
      const found = problems.faults[kind] as number[];
      const junk = el("button", { type: "button", class: "more", click: () => actions.junk(found.filter((image) => !report.review.isReviewed(image))) }, "Mark all as junk");
      return part(title, words, counts[kind] ?? found.length, () => el("div", {}, gallery(found, title), junk));
    }),
    part(
      "Outliers",
      "Unusually far from the centre of their cluster, the farthest first. They may still belong there: check the first ones.",
      counts.outliers,
      () => gallery(problems.outliers, "Outliers"),
    ),
    counts.lowConfidence > 0 && el("section", {}, el("p", { class: "quiet" }, `${images(counts.lowConfidence)} of low confidence ${counts.lowConfidence === 1 ? "is" : "are"} no fault of the folder: `, el("a", { href: "#/review" }, "Review"), " shows them first.")),
  );
  const corrected = (): boolean => {
    for (const list of lists) list.show();
    return true;
  };
  return { title: () => "Problems", content, corrected };
}

function part(title: string, words: string, found: number, show: () => HTMLElement): HTMLElement {
  const heading = el("h2", {}, title, " ", el("span", { class: "badge" }, count(found)));
  if (found === 0) return el("section", {}, heading, el("p", { class: "quiet" }, "None found."));
  return el("section", {}, heading, el("p", { class: "quiet" }, words), show());
}

function repeated(gallery: Lister, groups: number[][]): () => HTMLElement {
  return () => {
    const rest = groups.length - MOST_GROUPS;
    return el(
      "div",
      { class: "groups" },
      groups
        .slice(0, MOST_GROUPS)
        .map((group, place) => el("div", { class: "group" }, gallery(group, `Group ${place + 1}`))),
      rest > 0 && el("p", { class: "quiet" }, `and ${counted(rest, "more group")}`),
    );
  };
}

function unreadable(files: [string, string][]): HTMLElement {
  return el(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": "Unreadable files" },
    el(
      "table",
      {},
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "File"), el("th", { scope: "col" }, "Reason"))),
      el("tbody", {}, files.map(([name, reason]) => el("tr", {}, el("td", {}, name), el("td", {}, reason)))),
    ),
  );
}
