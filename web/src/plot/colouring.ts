import { colourOf, faint, ramp, shapeOf } from "../palette";
import type { Report } from "../report";

export type By = "cluster" | "label" | "confidence";

/** The colouring of dots: a code for each image, and for each code its colour, shape and name in the legend. */
export interface Colouring {
  codes: ArrayLike<number>;
  colours: string[];
  shapes: string[];
  names: string[];
}

export function colouring(report: Report, by: By): Colouring {
  if (by === "confidence") return byConfidence(report);
  if (by === "cluster" || report.labels === null) return byCluster(report);
  const { names, of } = report.labels;
  const places = names.map((_, place) => place);
  return { codes: of, colours: places.map(colourOf), shapes: places.map(shapeOf), names };
}

/** A cluster's code is its place among the clusters; colour and shape are those of its id. */
function byCluster(report: Report): Colouring {
  const ids = report.clusters.map(({ id }) => id);
  const places = new Map(ids.map((id, place) => [id, place]));
  const codes = new Int32Array(report.count);
  for (let image = 0; image < report.count; image++) codes[image] = places.get(report.cluster[image] as number) as number;
  const names = report.clusters.map(({ id, name }) => name ?? String(id));
  return { codes, colours: ids.map(colourOf), shapes: ids.map(shapeOf), names };
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
  return { codes, colours, shapes: colours.map(() => "■"), names };
}
