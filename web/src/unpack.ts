import type { Packed } from "./payload";

const UNIT = 65535;

/** Turn base64 into whole numbers. */
export function integers(packed: Packed): Uint8Array | Uint16Array | Int32Array {
  const bytes = bytesOf(packed);
  if (packed.kind === "u8") return bytes;
  return packed.kind === "i32" ? new Int32Array(bytes.buffer) : new Uint16Array(bytes.buffer);
}

/** Turn base64 into numbers from 0 to 1. */
export function units(packed: Packed): Float32Array {
  const values = new Uint16Array(bytesOf(packed).buffer);
  const result = new Float32Array(values.length);
  for (let i = 0; i < values.length; i++) result[i] = (values[i] as number) / UNIT;
  return result;
}

/** The positions of such numbers from 0 to `most` in ascending order; equal ones keep their order. */
export function ascending(values: Float32Array, most: number): Int32Array {
  const levels = Uint16Array.from(values, (value) => Math.round((value / most) * UNIT));
  const next = new Int32Array(UNIT + 2);
  for (const level of levels) next[level + 1] = (next[level + 1] as number) + 1;
  for (let level = 1; level < next.length; level++) next[level] = (next[level] as number) + (next[level - 1] as number);
  const order = new Int32Array(values.length);
  levels.forEach((level, place) => {
    order[next[level] as number] = place;
    next[level] = (next[level] as number) + 1;
  });
  return order;
}

function bytesOf({ bytes, base64 }: Packed): Uint8Array<ArrayBuffer> {
  return bytes ?? decoded(base64 ?? "");
}

export function decoded(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}
