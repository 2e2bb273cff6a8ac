import { el, replace } from "./dom";
import { focusOn, showChosen } from "./gallery";
import { Actions } from "./review/actions";
import { reviewBar } from "./review/bar";
import { listenToKeys } from "./review/keys";
import { JUNK } from "./review/replay";
import { type Route, parseRoute } from "./route";
import type { Report } from "./report";
import { count, images } from "./words";
import { clusterScreen } from "./screens/cluster";
import { labelsScreen } from "./screens/labels";
import { mapScreen } from "./screens/map";
import { overviewScreen } from "./screens/overview";
import { problemsScreen } from "./screens/problems";
import { reviewScreen } from "./screens/review";
import { trainingScreen } from "./screens/training";

/** A screen: what it is called, what it shows, and what to do when it is left. */
export interface Screen {
  title: string;
  content: HTMLElement;
  shown?: () => void;
  left?: () => void;
  /** Show what was corrected; a screen without it is made again. */
  corrected?: () => void;
}

/** Put up the frame around the screens and follow the address. */
export function startShell(root: HTMLElement, report: Report): void {
  const main = el("main", { id: "main", tabindex: -1 });
  const links = navigation(report);
  const short = el("span", { class: "quiet" });
  const bar = reviewBar(report, () => actions);
  const actions = new Actions(report, bar.say);
  const header = el(
    "header",
    { class: "top" },
    el("div", { class: "brand" }, el("strong", {}, report.title), short),
    el("nav", { "aria-label": "Screens" }, links),
  );
  replace(root, header, main, bar.element);
  let current: Screen | null = null;

  function show(moveFocus: boolean): void {
    // The skip link's own address is no screen.
    if (location.hash === "#main" && current !== null) return main.focus();
    const route = parseRoute(location.hash);
    current?.left?.();
    current = screenOf(report, route, actions);
    document.title = `${current.title} · ${report.title}`;
    for (const link of links) {
      // A cluster is reached from the overview.
      if (link.dataset["screen"] === route.screen) link.setAttribute("aria-current", "page");
      else if (link.dataset["screen"] === "overview" && route.screen === "cluster") link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    replace(main, current.content);
    window.scrollTo(0, 0);
    current.shown?.();
    if (moveFocus) main.focus({ preventScroll: true });
  }

  function refresh(): void {
    short.textContent = summary(report);
    bar.update();
    if (current?.corrected !== undefined) current.corrected();
    else if (current !== null) keepingPlace(main, () => show(false));
  }

  report.review.listen(refresh);
  report.selection.listen(() => {
    bar.update();
    for (const thumb of main.querySelectorAll<HTMLElement>(".thumb")) showChosen(report, thumb);
  });
  listenToKeys(report, actions);
  window.addEventListener("beforeunload", (event) => {
    if (report.review.unsaved.length > 0 && !report.review.kept) event.preventDefault();
  });
  window.addEventListener("hashchange", () => show(true));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => show(false));
  show(false);
  refresh();
}

/** Make the screen again and leave a person where they were: how far down, how much of each list, and in the same place of it. */
function keepingPlace(main: HTMLElement, make: () => void): void {
  const lists = (): HTMLElement[] => [...main.querySelectorAll<HTMLElement>(".gallery")];
  const before = lists();
  const [top, active] = [window.scrollY, document.activeElement as HTMLElement | null];
  const shown = new Map(before.map((list) => [list.ariaLabel, list.children.length]));
  const within = active?.closest<HTMLElement>(".gallery") ?? null;
  const place = within === null ? -1 : [...within.children].indexOf(active as HTMLElement);
  const [key, words] = [active?.closest<HTMLElement>("[data-cluster]")?.dataset["cluster"], active?.textContent];
  const lost = main.contains(active);
  make();
  for (const list of lists()) {
    const more = list.nextElementSibling as HTMLElement | null;
    while (more !== null && !more.hidden && list.children.length < (shown.get(list.ariaLabel) ?? 0)) more.click();
    if (within !== null && list.ariaLabel === within.ariaLabel) focusOn(list, place);
  }
  if (lost && within === null) {
    const same = [...main.querySelectorAll<HTMLElement>("button, a")].find(
      (each) => each.textContent === words || (each.matches(".card") && each.closest<HTMLElement>("[data-cluster]")?.dataset["cluster"] === key),
    );
    (same ?? main).focus({ preventScroll: true });
  } else if (lost && !main.contains(document.activeElement)) main.focus({ preventScroll: true });
  window.scrollTo(0, top);
}

function screenOf(report: Report, route: Route, actions: Actions): Screen {
  switch (route.screen) {
    case "map":
      return mapScreen(report);
    case "review":
      return reviewScreen(report, actions);
    case "problems":
      return problemsScreen(report);
    case "training":
      return trainingScreen(report);
    case "labels":
      return labelsScreen(report, route.label, route.cluster);
    case "cluster":
      return clusterScreen(report, route.id, actions);
    default:
      return overviewScreen(report);
  }
}

function navigation(report: Report): HTMLAnchorElement[] {
  const found = Object.values(report.problems.counts).reduce((sum, each) => sum + each, 0);
  const entries: [string, string, string | null][] = [
    ["overview", "Overview", null],
    ["map", "Map", null],
    ["review", "Review", null],
    ["problems", "Problems", found > 0 ? count(found) : null],
    ...(report.labels === null ? [] : [["labels", "Labels", null] as [string, string, null]]),
    ["training", "Training", null],
  ];
  return entries.map(([screen, words, badge]) =>
    el("a", { href: `#/${screen}`, "data-screen": screen }, words, " ", badge !== null && el("span", { class: "badge" }, badge)),
  );
}

function summary(report: Report): string {
  return `${images(report.count)} in ${count(report.clusters.filter(({ id }) => id !== JUNK).length)} clusters`;
}
