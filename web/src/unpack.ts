import type { Packed } from "./payload";

const UNIT = 65535;

/** Turn base64 into whole numbers. */
export function integers(packed: Packed): Uint8Array | Uint16Array | Int32Array {
  const bytes = bytesOf(packed.base64);
  if (packed.kind === "u8") return bytes;
  return packed.kind === "i32" ? new Int32Array(bytes.buffer) : new Uint16Array(bytes.buffer);
}

/** Turn base64 into numbers from 0 to 1. */
export function units(packed: Packed): Float32Array {
  const values = new Uint16Array(bytesOf(packed.base64).buffer);
  const result = new Float32Array(values.length);
  for (let i = 0; i < values.length; i++) result[i] = (values[i] as number) / UNIT;
  return result;
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}
