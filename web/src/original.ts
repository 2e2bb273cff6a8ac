import type { Report } from "./report";

/** The address of an image's file, if the run's source is a folder; a served page asks the server by row. */
export function originalOf(report: Report, image: number): string | null {
  if (report.originals === null) return null;
  if (report.review.saving !== null) return `original/${image}`;
  return report.originals + report.nameOf(image).split("/").map(segment).join("/");
}

/** Undo the escapes of the run's table (`data/files/names.py`) and write the name as an address. */
function segment(name: string): string {
  return name
    .split(/(\\\\|\\x[0-9a-f]{2}|\\u[0-9a-f]{4})/)
    .map((part) => {
      if (part === "\\\\") return "%5C";
      if (part.startsWith("\\x")) return `%${part.slice(2).toUpperCase()}`;
      return part.startsWith("\\u") ? "" : encodeURIComponent(part);
    })
    .join("");
}
