import "./style/base.css";
import "./style/cards.css";
import "./style/gallery.css";
import "./style/map.css";
import "./style/figures.css";
import "./style/review.css";
import "./style/against.css";
import { el, replace } from "./dom";
import { readReport } from "./report";
import { startShell } from "./shell";

export { replay } from "./review/replay"; // as ProposReport.replay, for whoever checks it against Python's

const root = document.getElementById("app") as HTMLElement;
const payload = window.PROPOS_REPORT;
if (payload === undefined) {
  replace(root, el("p", { class: "wait" }, "The data of this report (data.js) is missing: keep it beside index.html."));
} else {
  const report = readReport(payload);
  delete window.PROPOS_REPORT;
  startShell(root, report);
}
