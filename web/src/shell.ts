import { el, replace } from "./dom";
import { focusAmong, focusOf, keepingPlace } from "./focus";
import { showChosen } from "./gallery";
import { Actions } from "./review/actions";
import { reviewBar } from "./review/bar";
import { listenToKeys } from "./review/keys";
import { JUNK } from "./review/replay";
import { type Route, parseRoute } from "./route";
import type { Report } from "./report";
import { count, counted, images } from "./format";
import { auditScreen } from "./screens/audit";
import { comparisonScreen } from "./screens/comparison";
import { clusterScreen } from "./screens/cluster";
import { labelsScreen } from "./screens/labels";
import { likeScreen } from "./screens/like";
import { mapScreen } from "./screens/map";
import { overviewScreen } from "./screens/overview";
import { problemsScreen } from "./screens/problems";
import { questionsScreen } from "./screens/questions";
import { reviewScreen } from "./screens/review";
import { findsTexts, searchScreen } from "./screens/search";
import { trainingScreen } from "./screens/training";
import { treeScreen } from "./screens/tree";
import { studioAddress } from "./studio/address";
import { openProblems, total } from "./todo";

/** A screen: its title, its content, and what to do when it is left. */
export interface Screen {
  title: () => string;
  content: HTMLElement;
  shown?: () => void;
  left?: () => void;
  /** Update the screen after a correction; if it returns false, the screen is built again. */
  corrected?: () => boolean;
}

/** Build the frame around the screens and follow the address. */
export function startShell(root: HTMLElement, report: Report): void {
  const main = el("main", { id: "main", tabindex: -1 });
  const links = navigation(report);
  const short = el("span", { class: "quiet" });
  const studio = studioAddress();
  const bar = reviewBar(report, () => actions);
  const actions = new Actions(report, bar.say, (images) => focusAmong(report, main, images));
  const header = el(
    "header",
    { class: "top" },
    el("div", { class: "brand" }, studio === null ? null : el("a", { href: studio }, "All runs"), el("strong", {}, report.title), short),
    el("nav", { "aria-label": "Screens" }, links),
  );
  replace(root, header, main, bar.element);
  let current: Screen | null = null;
  let address = ""; // of the current screen

  /** Whether the address is another screen's; the skip link's own is no screen. */
  const elsewhere = (): boolean => location.hash !== address && location.hash !== "#main";

  function show(moveFocus: boolean): void {
    address = location.hash;
    const route = parseRoute(address);
    current?.left?.();
    current = screenOf(report, route, actions);
    document.title = `${current.title()} · ${report.title}`;
    for (const link of links) {
      // A cluster is reached from the overview.
      if (link.dataset["screen"] === route.screen) link.setAttribute("aria-current", "page");
      else if (link.dataset["screen"] === "overview" && route.screen === "cluster") link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    // On a phone not all of them are in view.
    links.find((link) => link.hasAttribute("aria-current"))?.scrollIntoView({ block: "nearest", inline: "nearest" });
    replace(main, current.content);
    window.scrollTo(0, 0);
    if (moveFocus) main.focus({ preventScroll: true });
    current.shown?.();
  }

  function refresh(regrouped: boolean): void {
    bar.update();
    if (!regrouped) return;
    short.textContent = summary(report);
    showBadge(report, links);
    // What was corrected may lead elsewhere.
    if (elsewhere()) return show(true);
    const goOn = focusOf(main);
    if (current?.corrected?.() !== true) return keepingPlace(main, () => show(false));
    document.title = `${current.title()} · ${report.title}`;
    goOn();
  }

  /** Report that a cluster that was split off here got another id, because another window used its id first. */
  function renumber(now: ReadonlyMap<number, number>): void {
    for (const [was, id] of now) if (location.hash === `#/cluster/${was}`) location.replace(`#/cluster/${id}`);
    bar.say([...now].map(([was, id]) => `The new cluster ${was} is now cluster ${id}: another window used ${was} first.`).join(" "));
  }

  report.review.listen(refresh);
  report.review.renumbered = renumber;
  report.selection.listen(() => {
    bar.update();
    for (const thumb of main.querySelectorAll<HTMLElement>(".thumb")) showChosen(report, thumb);
  });
  listenToKeys(report, actions);
  window.addEventListener("beforeunload", (event) => {
    if (report.review.unsaved.length > 0 && !report.review.kept) event.preventDefault();
  });
  window.addEventListener("hashchange", () => (elsewhere() ? show(true) : main.focus({ preventScroll: true })));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => show(false));
  short.textContent = summary(report);
  bar.update();
  show(false);
}

function screenOf(report: Report, route: Route, actions: Actions): Screen {
  switch (route.screen) {
    case "map":
      return mapScreen(report);
    case "tree":
      return treeScreen(report, actions);
    case "review":
      return reviewScreen(report, actions);
    case "questions":
      return questionsScreen(report, actions);
    case "audit":
      return auditScreen(report, actions);
    case "problems":
      return problemsScreen(report, actions);
    case "search":
      return findsTexts() ? searchScreen(report) : overviewScreen(report);
    case "training":
      return isTrained(report) ? trainingScreen(report) : overviewScreen(report);
    case "labels":
      return labelsScreen(report, route.label, route.cluster);
    case "comparison":
      return comparisonScreen(report, route.row, route.cluster);
    case "cluster":
      return clusterScreen(report, route.id, actions);
    case "like":
      return likeScreen(report, route.images, actions);
    default:
      return overviewScreen(report);
  }
}

/** The screens, those with something to do in the order of `start.ts`. */
function navigation(report: Report): HTMLAnchorElement[] {
  const entries: [screen: string, words: string, there: boolean][] = [
    ["overview", "Overview", true],
    ["map", "Map", true],
    ["tree", "Tree", (report.review.tree?.merges.length ?? 0) > 0],
    ["search", "Search", findsTexts()],
    ["problems", "Problems", true],
    ["questions", "Questions", true],
    ["review", "Review", true],
    ["audit", "Audit", true],
    ["labels", "Labels", report.labels !== null],
    ["comparison", "Compared", report.comparison !== null],
    ["training", "Training", isTrained(report)],
  ];
  const links = entries.filter(([, , there]) => there).map(([screen, words]) => el("a", { href: `#/${screen}`, "data-screen": screen }, words, " ", el("span", { class: "badge", hidden: true })));
  showBadge(report, links);
  return links;
}

/** Show the number of open problems in their link. */
function showBadge(report: Report, links: readonly HTMLAnchorElement[]): void {
  const badge = links.find((link) => link.dataset["screen"] === "problems")?.querySelector<HTMLElement>(".badge");
  const left = total(openProblems(report));
  if (badge === null || badge === undefined) return;
  badge.hidden = left === 0;
  badge.textContent = count(left);
}

/** Whether a network was trained: a run that only clusters has one line of history. */
const isTrained = ({ epochs }: Report): boolean => epochs.length > 1;

function summary(report: Report): string {
  return `${images(report.count)} in ${counted(report.clusters.filter(({ id }) => id !== JUNK).length, "cluster")}`;
}
