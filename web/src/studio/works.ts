import { el, replace } from "../dom";
import { count } from "../format";
import { type OtherWork, get } from "./api";

const STATES: Record<OtherWork["state"], string> = { waiting: "waiting", working: "under way", stopping: "stopping", paused: "stopped", failed: "failed", done: "done" };

/** Exports and predictions of a run, with what they wrote. */
export function works(all: OtherWork[]): HTMLElement[] {
  if (all.length === 0) return [];
  return [el("section", {}, el("h2", {}, "Exports and predictions"), el("ul", { class: "plain" }, all.map(line).reverse()))];
}

function line(work: OtherWork): HTMLElement {
  const what = work.kind === "export" ? `Export as ${work.form}` : `Prediction of ${work.source}`;
  const result = work.state !== "done" ? STATES[work.state] : `done: written to ${work.output ?? ""}`;
  return el(
    "li",
    { class: "row" },
    el("span", {}, what),
    work.state === "done" && work.download ? el("a", { href: `api/result/${work.id}`, download: "" }, "Download") : el("span", { class: "quiet" }, result),
    work.state === "done" && work.kind === "predict" ? summary(work.id) : null,
    work.message === "" ? null : el("span", { class: "warn" }, work.message),
  );
}

/** How many images of a prediction went to each cluster. */
function summary(id: string): HTMLElement {
  const list = el("ul", { class: "counts", "aria-label": "Images of each cluster" });
  const line = ([name, number]: [string, number]): HTMLElement => el("li", {}, `${name}: ${count(number)}`);
  void get<[string, number][]>(`api/summary/${id}`).then((found) => replace(list, ...found.map(line)), () => list.remove());
  return list;
}
