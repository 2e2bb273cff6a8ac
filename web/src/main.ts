import "./style/base.css";
import "./style/cards.css";
import "./style/gallery.css";
import "./style/map.css";
import "./style/figures.css";
import "./style/review.css";
import "./style/dialogs.css";
import "./style/comparison.css";
import { el, replace } from "./dom";
import { loadParts } from "./parts";
import type { Packed, Payload } from "./payload";
import { readReport } from "./report";
import { startShell } from "./shell";
import { decoded } from "./unpack";

// As ProposReport.replay and so on, for tests that compare them with Python's.
export { Names } from "./names";
export { homeReach, tileSide } from "./plot/plot";
export { drawSome } from "./plot/sample";
export { Known, after } from "./review/edits";
export { replay } from "./review/replay";
export { Tree } from "./tree";
export { cohesion } from "./review/texts";

const root = document.getElementById("app") as HTMLElement;
const [payload, edits, earlier] = [window.PROPOS_REPORT, window.PROPOS_EDITS, window.PROPOS_EARLIER_EDITS ?? []];
if (payload === undefined || edits === undefined) {
  missing(payload === undefined ? "data.js" : "edits.js");
} else {
  delete window.PROPOS_REPORT;
  delete window.PROPOS_EDITS;
  const large = largeIn(payload);
  if (earlier.length + large.length === 0) start(payload, [edits]);
  else void startWithParts(payload, large, edits);
}

function start(data: Payload, log: readonly string[]): void {
  const proposals = window.PROPOS_PROPOSALS ?? "";
  delete window.PROPOS_PROPOSALS;
  startShell(root, readReport(data, log, proposals));
}

/** The arrays that have a script of their own. */
function largeIn(data: object): Packed[] {
  return Object.values(data).flatMap((value: unknown) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return [];
    return "kind" in value && "file" in value ? [value as Packed] : largeIn(value);
  });
}

async function startWithParts(data: Payload, large: readonly Packed[], last: string): Promise<void> {
  const log: string[] = [];
  try {
    await loadParts(
      large.map(({ file }) => file as string),
      (text, place) => ((large[place] as Packed).bytes = decoded(text)),
    );
    await loadParts(earlier, (text) => log.push(text));
  } catch (error) {
    return missing((error as Error).message);
  }
  start(data, [...log, last]);
}

function missing(file: string): void {
  replace(root, el("p", { class: "wait" }, `The data of this report (${file}) is missing: keep it in the folder of index.html.`));
}
