/** Requests to the server, whose routes are in `src/propos/review/studio/app.py`. */

export type RunState = "waiting" | "working" | "stopping" | "paused" | "failed" | "finished" | "elsewhere" | "damaged";

export interface Progress {
  doing: string;
  done?: number;
  total?: number;
  left?: number | null;
}

export interface RunFacts {
  name: string;
  title: string;
  images: number | null;
  clusters: string | null;
  started: string;
  source?: string | null;
  earlier: string | null;
  state: RunState;
  message?: string;
  work?: string;
  progress?: Progress | null;
  page?: boolean;
  picture?: string | null;
  reviewed?: number;
}

export interface OtherWork {
  id: string;
  kind: "export" | "predict";
  run: string;
  form: string;
  source: string | null;
  state: "waiting" | "working" | "stopping" | "paused" | "failed" | "done";
  message: string;
  download: boolean;
  output: string | null;
}

export interface State {
  runs: RunFacts[];
  work: OtherWork[];
  trash: { entry: string; name: string }[];
}

export interface Folder {
  path: string | null;
  parent: string | null;
  folders: { name: string; path: string }[];
  files: number;
  more: boolean;
  pictures: string[];
}

export interface Inspection {
  images: number;
  channels: number;
  formats: Record<string, number>;
  sizes: Record<string, number>;
  skipped: Record<string, string>;
  notes: string[];
  recipe: string;
  epochs: number | null;
  seconds: number;
  reasons: Record<string, string>;
  counts: Record<"duplicates" | "tiny" | "odd" | "sizes" | "skipped", number>;
}

export interface Plan {
  output: string;
  count: number;
  files: [original: string, place: string][];
  left: number;
  clusters: number;
  unnamed: number;
}

/** The server refused; the message is for the person. */
export class Refused extends Error {}

const GONE = "The server does not respond. If propos studio was stopped, start it again; running runs continue.";
const RESTARTED = "propos studio was started again: use the address that it printed. Nothing is lost.";

export async function get<T>(path: string, query: Record<string, string> = {}): Promise<T> {
  return (await (await ask(`${path}?${new URLSearchParams(query)}`, {})).json()) as T;
}

export async function post<T>(path: string, body: object): Promise<T> {
  return (await (await ask(path, { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } })).json()) as T;
}

/** Ask, and turn every way to fail into a sentence. */
export async function ask(path: string, options: RequestInit): Promise<Response> {
  const answer = await fetch(path, options).catch(() => {
    throw new Refused(GONE);
  });
  if (answer.status === 403) throw new Refused(RESTARTED);
  if (!answer.ok) throw new Refused((await answer.text()).trim());
  return answer;
}

/** An id for something to be done once, however often it is sent. */
export const identity = (): string => crypto.randomUUID();

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
