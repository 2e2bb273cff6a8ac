import { el, replace } from "./dom";
import { type Route, parseRoute } from "./route";
import type { Report } from "./report";
import { count, images } from "./words";
import { clusterScreen } from "./screens/cluster";
import { labelsScreen } from "./screens/labels";
import { mapScreen } from "./screens/map";
import { overviewScreen } from "./screens/overview";
import { problemsScreen } from "./screens/problems";
import { trainingScreen } from "./screens/training";

/** A screen: what it is called, what it shows, and what to do when it is left. */
export interface Screen {
  title: string;
  content: HTMLElement;
  shown?: () => void;
  left?: () => void;
}

/** Put up the frame around the screens and follow the address. */
export function startShell(root: HTMLElement, report: Report): void {
  const main = el("main", { id: "main", tabindex: -1 });
  const links = navigation(report);
  const header = el(
    "header",
    { class: "top" },
    el("div", { class: "brand" }, el("strong", {}, report.title), el("span", { class: "quiet" }, summary(report))),
    el("nav", { "aria-label": "Screens" }, links),
  );
  replace(root, header, main);
  let current: Screen | null = null;

  function show(moveFocus: boolean): void {
    // The skip link's own address is no screen.
    if (location.hash === "#main" && current !== null) return main.focus();
    const route = parseRoute(location.hash);
    current?.left?.();
    current = screenOf(report, route);
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

  window.addEventListener("hashchange", () => show(true));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => show(false));
  show(false);
}

function screenOf(report: Report, route: Route): Screen {
  switch (route.screen) {
    case "map":
      return mapScreen(report);
    case "problems":
      return problemsScreen(report);
    case "training":
      return trainingScreen(report);
    case "labels":
      return labelsScreen(report, route.label, route.cluster);
    case "cluster":
      return clusterScreen(report, route.id);
    default:
      return overviewScreen(report);
  }
}

function navigation(report: Report): HTMLAnchorElement[] {
  const found = Object.values(report.problems.counts).reduce((sum, each) => sum + each, 0);
  const entries: [string, string, string | null][] = [
    ["overview", "Overview", null],
    ["map", "Map", null],
    ["problems", "Problems", found > 0 ? count(found) : null],
    ...(report.labels === null ? [] : [["labels", "Labels", null] as [string, string, null]]),
    ["training", "Training", null],
  ];
  return entries.map(([screen, words, badge]) =>
    el("a", { href: `#/${screen}`, "data-screen": screen }, words, " ", badge !== null && el("span", { class: "badge" }, badge)),
  );
}

function summary(report: Report): string {
  return `${images(report.count)} in ${count(report.clusters.length)} clusters`;
}
