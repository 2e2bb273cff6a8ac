import { el } from "../dom";
import type { RunFacts } from "./api";

/** A bar with the share of the current step that is done; nothing where it is not known. */
export function bar({ progress, state }: RunFacts): HTMLElement | null {
  if (state !== "working" && state !== "elsewhere") return null;
  const known = progress?.done !== undefined && progress.total;
  return el("progress", { "aria-label": progress?.doing ?? "Starting", max: 1, ...(known ? { value: (progress.done as number) / (progress.total as number) } : {}) });
}
