import { el, replace } from "../dom";
import { Gallery } from "../gallery";
import type { By } from "../plot/colouring";
import { controls } from "../plot/controls";
import { legend } from "../plot/legend";
import { MOST_DOTS } from "../plot/sample";
import { MapView } from "../plot/view";
import type { Report } from "../report";
import type { Screen } from "../shell";
import { count, images } from "../format";

const WORDS = "Similar images lie close together. Distances between far groups mean little.";
const HOW = "Click a dot or a picture to see its image. Draw around images, or list what is in view, and they are shown here.";
const FEW = 2_000; // up to this number of images, thumbnails show more than dots although they hide each other

/** What the map leaves out. */
function sampleNote(report: Report): HTMLElement | null {
  if (report.count <= MOST_DOTS) return null;
  return el("p", { class: "quiet" }, `The map draws ${count(MOST_DOTS)} of ${images(report.count)}, evenly chosen. The list of what is in view has all.`);
}

/** The map of all images: hover to see one, draw around some to list them. */
export function mapScreen(report: Report): Screen {
  const chosen = el("section", { "aria-live": "polite", class: "chosen" });
  const keys = el("ul", { class: "keys", "aria-label": "Colours" });
  // On a phone the list lies below the map, out of sight: its number stands in a corner.
  const jump = el("button", { type: "button", class: "jump", hidden: true }, "Nothing chosen");
  jump.addEventListener("click", () => chosen.scrollIntoView({ block: "start" }));
  const list = new Gallery(report, [], "Chosen images");
  const view = new MapView(report, (found) => {
    report.selection.clear();
    report.selection.add(found);
    jump.hidden = found.length === 0;
    jump.textContent = `${images(found.length)} chosen ↓`;
    list.show([...found].sort((a, b) => (report.distance[a] ?? 0) - (report.distance[b] ?? 0)));
    if (found.length === 0) replace(chosen, el("p", { class: "quiet" }, HOW));
    else replace(chosen, el("h2", {}, `${images(found.length)} chosen`), list.element);
  });
  const drawKeys = (): void => replace(keys, ...legend(view.colours, (code) => view.highlight(code)));
  const pictures = report.sheets !== null;
  const ways: By[] = report.labels === null ? ["cluster", "confidence"] : ["cluster", "label", "confidence"];
  view.element.append(jump);
  replace(chosen, el("p", { class: "quiet" }, HOW));
  drawKeys();
  const content = el(
    "div",
    { class: "screen" },
    el("h1", {}, "Map"),
    controls(view, ways, pictures, pictures && report.count <= FEW, drawKeys),
    el("div", { class: "atlas" }, view.element, el("div", { class: "side-panel" }, keys, el("p", { class: "quiet" }, WORDS), sampleNote(report), chosen)),
  );
  const corrected = (): boolean => {
    view.corrected();
    drawKeys();
    list.show();
    return true;
  };
  return { title: () => "Map", content, shown: () => view.start(), left: () => view.stop(), corrected };
}
