import { faint, ramp, scheme } from "../palette";
import type { Report } from "../report";

export type By = "cluster" | "label" | "confidence";

/** What the dots' colours say: a code for each image, the colours of the codes, and names for the legend. */
export interface Colouring {
  codes: ArrayLike<number>;
  colours: string[];
  names: string[];
  ordered: boolean; // a scale, not kinds
}

export function colouring(report: Report, by: By): Colouring {
  if (by === "confidence") return byConfidence(report);
  const labels = by === "label" ? report.labels : null;
  const names = labels === null ? report.clusters.map(({ number }) => String(number)) : labels.names;
  const available = scheme();
  const colours = names.map((_, place) => available[place % available.length] as string);
  return { codes: labels === null ? report.cluster : labels.of, colours, names, ordered: false };
}

/** The same colours with all but one code faint. */
export function only(colours: string[], code: number | null): string[] {
  return code === null ? colours : colours.map((colour, place) => (place === code ? colour : faint()));
}

function byConfidence(report: Report): Colouring {
  const colours = ramp();
  const steps = colours.length;
  const codes = new Uint8Array(report.count);
  for (let image = 0; image < report.count; image++) {
    codes[image] = Math.min(steps - 1, Math.floor((report.confidence[image] as number) * steps));
  }
  const names = colours.map((_, place) => `${(place / steps).toFixed(1)} – ${((place + 1) / steps).toFixed(1)}`);
  return { codes, colours, names, ordered: true };
}
