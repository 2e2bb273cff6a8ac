import "./style/base.css";
import "./style/cards.css";
import "./style/gallery.css";
import "./style/map.css";
import "./style/figures.css";
import "./style/review.css";
import "./style/dialogs.css";
import "./style/comparison.css";
import { el, replace } from "./dom";
import { readReport } from "./report";
import { startShell } from "./shell";

// As ProposReport.replay and so on, for tests that compare them with Python's.
export { Known, after } from "./review/edits";
export { replay } from "./review/replay";
export { cohesion } from "./review/texts";

const root = document.getElementById("app") as HTMLElement;
const [payload, edits] = [window.PROPOS_REPORT, window.PROPOS_EDITS];
if (payload === undefined || edits === undefined) {
  const missing = payload === undefined ? "data.js" : "edits.js";
  replace(root, el("p", { class: "wait" }, `The data of this report (${missing}) is missing: keep it in the folder of index.html.`));
} else {
  const report = readReport(payload, edits);
  delete window.PROPOS_REPORT;
  delete window.PROPOS_EDITS;
  startShell(root, report);
}
