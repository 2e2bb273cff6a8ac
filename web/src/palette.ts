// Paul Tol's "muted" and "light" schemes, distinct under the common colour blindnesses; beyond ten clusters the
// colours come again with another shape, and the map carries every cluster's number.
const ON_LIGHT = ["#cc6677", "#332288", "#c4a82c", "#117733", "#5ab3e0", "#882255", "#44aa99", "#8a8a22", "#aa4499", "#777777"];
const ON_DARK = ["#ee8866", "#77aadd", "#eedd88", "#44bb99", "#99ddff", "#ffaabb", "#bbcc33", "#c9a7e8", "#e0e0e0", "#aaaa00"];
// Based on cividis: low confidence stands out, high does not, and every colour is visible on the background.
const RAMP_ON_LIGHT = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#b5a45c", "#c2a93f", "#cdab16"];
const RAMP_ON_DARK = ["#fee838", "#e1cc55", "#c3b369", "#a59c74", "#8a8678", "#7d7f86", "#6f7890", "#5f7099", "#4f68a3", "#3f60ad"];
const SHAPES = ["●", "■", "▲", "◆", "✚", "★", "▼", "⬟"];

export const COLOURS = ON_LIGHT.length;
export const isDark = (): boolean => matchMedia("(prefers-color-scheme: dark)").matches;
export const scheme = (): string[] => (isDark() ? ON_DARK : ON_LIGHT);
export const ramp = (): string[] => (isDark() ? RAMP_ON_DARK : RAMP_ON_LIGHT);
export const faint = (): string => (isDark() ? "#3a3d42" : "#d9d6d0");
const junk = (): string => (isDark() ? "#70757d" : "#a8a49c");

/** The colour of a cluster by its id, so that it never changes; or of a label by its position. */
export function colourOf(id: number): string {
  return id < 0 ? junk() : (scheme()[id % COLOURS] as string);
}

export function shapeOf(id: number): string {
  return id < 0 ? "✕" : (SHAPES[Math.floor(id / COLOURS) % SHAPES.length] as string);
}
