import { lineChart } from "./chart";
import { el } from "./dom";
import type { Suggestion } from "./payload";

/** How the number of clusters was suggested. */
export function suggestionChart({ range, scores, chosen, why }: Suggestion): HTMLElement {
  const title = `Why ${chosen} clusters`;
  const chart = lineChart({ title, caption: why, xLabel: "clusters", xs: range, curves: scores, mark: chosen });
  return el("section", { class: "suggestion" }, chart);
}
