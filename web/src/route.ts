export type Route =
  | { screen: "overview" | "map" | "tree" | "review" | "questions" | "problems" | "audit" | "search" | "training" }
  | { screen: "cluster"; id: number }
  | { screen: "like"; images: number[] }
  | { screen: "labels"; label: number | null; cluster: number | null }
  | { screen: "comparison"; row: number | null; cluster: number | null };

/** Read the part of the address behind #; what cannot be read is the overview. */
export function parseRoute(hash: string): Route {
  const [screen, first, second] = hash.replace(/^#\/?/, "").split("/");
  switch (screen) {
    case "map":
    case "tree":
    case "review":
    case "questions":
    case "problems":
    case "audit":
    case "search":
    case "training":
      return { screen };
    case "like":
      return { screen, images: (first ?? "").split(",").flatMap((each) => whole(each) ?? []) };
    case "labels":
      return { screen, label: whole(first), cluster: whole(second) };
    case "comparison":
      return { screen, row: whole(first), cluster: second === "-1" ? -1 : whole(second) };
    case "cluster": {
      const id = first === "-1" ? -1 : whole(first); // junk's
      return id === null ? { screen: "overview" } : { screen, id };
    }
    default:
      return { screen: "overview" };
  }
}

function whole(text: string | undefined): number | null {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : null;
}
