export type Route =
  | { screen: "overview" | "map" | "problems" | "training" }
  | { screen: "cluster"; number: number }
  | { screen: "labels"; row: number | null; column: number | null };

/** Read the part of the address behind #; what cannot be read is the overview. */
export function parseRoute(hash: string): Route {
  const [screen, first, second] = hash.replace(/^#\/?/, "").split("/");
  switch (screen) {
    case "map":
    case "problems":
    case "training":
      return { screen };
    case "labels":
      return { screen, row: whole(first), column: whole(second) };
    case "cluster": {
      const number = whole(first);
      return number === null ? { screen: "overview" } : { screen, number };
    }
    default:
      return { screen: "overview" };
  }
}

function whole(text: string | undefined): number | null {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : null;
}
