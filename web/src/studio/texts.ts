import { count, images, percent } from "../format";
import type { Progress, RunFacts } from "./api";

const DATE = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short" });

/** When a run was started, as people write it. */
export function started(run: RunFacts): string {
  const date = new Date(run.started);
  return Number.isNaN(date.getTime()) ? "" : DATE.format(date);
}

export function facts(run: RunFacts): string {
  const parts = [run.images === null ? null : images(run.images), run.clusters === null || run.clusters.includes("..") ? null : `${run.clusters} clusters`];
  return parts.filter((part) => part !== null).join(" in ");
}

export function reviewed(run: RunFacts): string {
  const all = run.images ?? 0;
  return all === 0 || !run.reviewed ? "nothing reviewed yet" : `${count(run.reviewed)} reviewed (${percent(run.reviewed / all)})`;
}

/** A duration in words. */
export function duration(seconds: number): string {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

const STATES: Record<RunFacts["state"], string> = {
  waiting: "Waiting for another run",
  working: "Starting",
  stopping: "Stopping after this step",
  paused: "Paused",
  failed: "Failed",
  finished: "Finished",
  elsewhere: "Computing, started in a terminal",
  damaged: "Cannot be read",
};

/** The state of a run, with what it is doing. */
export function stateText(run: RunFacts): string {
  const { progress, state } = run;
  return (state === "working" || state === "elsewhere") && progress ? doing(progress) : STATES[state];
}

function doing({ doing, done, total }: Progress): string {
  return done === undefined || !total ? doing : `${doing}: ${percent(done / total)}`;
}

export function leftText({ done, total, left }: Progress): string {
  const parts = [
    done === undefined || !total ? null : `${count(done)} of ${count(total)}`,
    left === null || left === undefined ? null : `about ${duration(left)} left`,
  ];
  return parts.filter((part) => part !== null).join(", ");
}
