import type { Report } from "../report";
import { parseRoute } from "../route";
import type { Actions } from "./actions";
import { showHelp } from "./help";
import { openImages } from "../screens/audit";

/** The images that a key means: the one shown large, else those chosen, else the one in focus. */
export function targetImages(report: Report): number[] {
  const { viewed, images } = report.selection;
  if (viewed !== null) return [viewed];
  if (images.size > 0) return [...images];
  const focused = document.activeElement?.closest<HTMLElement>(".thumb")?.dataset["image"];
  return focused === undefined ? [] : [Number(focused)];
}

/** The cluster that a key means: that of the card in focus, else that of the screen. */
export function targetCluster(): number | null {
  const marked = document.activeElement?.closest<HTMLElement>("[data-cluster]") ?? document.querySelector<HTMLElement>("main > [data-cluster]");
  const id = marked?.dataset["cluster"];
  return id === undefined ? null : Number(id);
}

/** Bind keys to actions, except in text fields and dialogs. */
export function listenToKeys(report: Report, actions: Actions): void {
  // An audit asks about one image at a time, wherever the focus is.
  const meant = (): number[] => (auditing() && report.selection.viewed === null ? openImages(report).slice(0, 1) : targetImages(report));
  const plain: Record<string, () => void> = {
    m: () => actions.move(meant()),
    s: () => actions.split(targetImages(report)),
    j: () => actions.junk(meant()),
    c: () => actions.confirm(targetImages(report)),
    y: () => (auditing() ? actions.judge(meant(), true) : actions.confirm(targetImages(report))),
    f: () => actions.like(targetImages(report)),
    o: () => void (parseRoute(location.hash).screen === "questions" && actions.other(targetImages(report))),
    C: () => actions.confirmCluster(targetCluster()),
    J: () => actions.junkCluster(targetCluster()),
    r: () => actions.rename(targetCluster()),
    a: () => actions.acceptName(targetCluster()),
    d: () => actions.describe(targetCluster()),
    g: () => actions.merge(targetCluster()),
    u: () => actions.undo(),
    U: () => actions.redo(),
    v: () => report.selection.choose(!report.selection.choosing),
    t: () => void (location.hash = "#/tree"),
    w: () => void (location.hash = "#/review"),
    q: () => void (location.hash = "#/questions"),
    n: () => (auditing() ? actions.judge(meant(), false) : step(report, 1)),
    p: () => step(report, -1),
    "?": showHelp,
    Escape: () => report.selection.clear(),
  };
  document.addEventListener("keydown", (event) => {
    const { key, ctrlKey, metaKey, altKey, shiftKey, target } = event;
    if (event.defaultPrevented || altKey || isAnswering(target as Element)) return;
    const command = ctrlKey || metaKey;
    const undoing = command && key.toLowerCase() === "z";
    const action = undoing ? (shiftKey ? () => actions.redo() : () => actions.undo()) : command ? undefined : plain[key];
    // Escape closes the image that is shown large, and leaves what was chosen as it is.
    if (action === undefined || (key === "Escape" && report.selection.viewed !== null)) return;
    if (key !== "Escape") event.preventDefault();
    action();
  });
}

const auditing = (): boolean => parseRoute(location.hash).screen === "audit";

/** Whether a key is part of an answer; a dialog that was just closed keeps the focus until the next frame. */
function isAnswering(target: Element): boolean {
  return target.closest("dialog:not([open])") === null && target.closest("input:not([type=range]), textarea, select, dialog:not(.viewer)") !== null;
}

/** Go to the cluster after, or before, the one that is shown. */
function step(report: Report, by: number): void {
  const { clusters } = report;
  const at = clusters.findIndex(({ id }) => id === targetCluster());
  const next = clusters[at < 0 ? (by > 0 ? 0 : clusters.length - 1) : at + by];
  if (next !== undefined && report.selection.viewed === null) location.hash = `#/cluster/${next.id}`;
}
