import type { Audit, Question } from "../payload";
import { type Edit, asLines } from "./edits";

export type Saving = "saved" | "saving" | "unreachable";

const MOST_SENT = 4_000_000; // letters
const EVERY = 1_000; // milliseconds between two looks at what other windows saved
const PATIENCE = 3_000; // until a server that did not answer is asked again

/** Images, best first, and the probability that each is wanted, where a classifier was trained. */
export interface Similar {
  rows: number[];
  probabilities: number[] | null;
}

interface Here {
  known: readonly Edit[]; // the log as far as it is known
  own: readonly Edit[]; // not saved yet
}

interface Answer {
  since: number;
  version: number;
  edits: Edit[];
}

type OnLog = (log: readonly Edit[], refused: { edits: readonly Edit[]; why: string } | null) => void;

/** The server answered that it cannot save now; what was sent is to be sent again. */
class Refused extends Error {}

/** Saves edits through the server of `propos open`, and receives the edits of other windows. */
export class Server {
  saving: Saving = "saved";
  /** Why a server that answers does not save; null where it does, or does not answer. */
  refusal: string | null = null;
  private here: () => Here = () => ({ known: [], own: [] });
  private onLog: OnLog = () => {};
  private changed: () => void = () => {};
  private busy = false;
  private careful = false; // send one at a time, to find the one that is refused
  private timer = 0;

  start(here: () => Here, onLog: OnLog, changed: () => void): void {
    [this.here, this.onLog, this.changed] = [here, onLog, changed];
    document.addEventListener("visibilitychange", () => !document.hidden && this.push());
    this.push();
  }

  /** Send what is not saved yet, and ask what is new. */
  push(): void {
    if (this.saving === "saved" && this.here().own.length > 0) this.say("saving"); // though an answer is still awaited
    if (!this.busy) void this.exchange();
  }

  /** The images that the run, as it stands by now, would ask about next. */
  async questions(): Promise<Question[] | null> {
    try {
      const answer = await fetch("api/questions");
      return answer.ok ? ((await answer.json()) as Question[]) : null;
    } catch {
      return null;
    }
  }

  /** The images most like some, or like a text; see `src/propos/review/server/similar.py`. */
  async ask(where: "api/similar" | "api/text", query: object): Promise<Similar | null> {
    try {
      const answer = await fetch(where, { method: "POST", body: JSON.stringify(query), headers: { "Content-Type": "application/json" } });
      return answer.ok ? ((await answer.json()) as Similar) : null;
    } catch {
      return null;
    }
  }

  /** What the audit of the run says by now, after drawing up to `count` images. */
  async audit(count: number): Promise<Audit | null> {
    try {
      const answer = await (count > 0 ? fetch(`api/audit?count=${count}`, { method: "POST" }) : fetch("api/audit"));
      return answer.ok ? ((await answer.json()) as Audit) : null;
    } catch {
      return null;
    }
  }

  private async exchange(): Promise<void> {
    this.busy = true;
    clearTimeout(this.timer);
    const { known, own } = this.here();
    const sent = this.careful ? own.slice(0, 1) : fitting(own);
    if (sent.length > 0) this.say("saving");
    const wait = await this.send(known, sent).catch((error: unknown) => {
      this.say("unreachable", error instanceof Refused ? error.message : null);
      return PATIENCE;
    });
    this.busy = false;
    if (wait === 0) return this.push();
    this.timer = window.setTimeout(() => (document.hidden ? (this.timer = 0) : this.push()), wait);
  }

  /** Returns how long to wait before the next time. */
  private async send(known: readonly Edit[], sent: readonly Edit[]): Promise<number> {
    const query = new URLSearchParams({ since: String(known.length), last: known.at(-1)?.id ?? "" });
    const post = { method: "POST", body: asLines(sent), headers: { "Content-Type": "application/jsonl" } };
    const answer = await fetch(`api/edits?${query}`, sent.length > 0 ? post : {});
    if (answer.status >= 500 || answer.status === 403) throw new Refused((await answer.text()).trim());
    if (!answer.ok) return this.giveWay(known, sent, await answer.text());
    const { since, edits } = (await answer.json()) as Answer;
    if (sent.length > 0) this.careful = false;
    if (edits.length > 0 || since !== known.length) this.onLog([...known.slice(0, since), ...edits], null);
    const left = this.here().own.length;
    this.say(left > 0 ? "saving" : "saved");
    return left > 0 ? 0 : EVERY;
  }

  /** One of several was refused, or the one that was sent: another window may have been first, so look before giving up. */
  private async giveWay(known: readonly Edit[], sent: readonly Edit[], why: string): Promise<number> {
    if (!this.careful) {
      this.careful = true;
      return this.send(known, []);
    }
    this.careful = false;
    this.onLog([...known], { edits: [...sent], why });
    return 0;
  }

  private say(saving: Saving, refusal: string | null = null): void {
    if (this.saving === saving && this.refusal === refusal) return;
    [this.saving, this.refusal] = [saving, refusal];
    this.changed();
  }
}

/** As many as may be sent at once, and at least one. */
function fitting(edits: readonly Edit[]): Edit[] {
  let letters = 0;
  const sent: Edit[] = [];
  for (const edit of edits) {
    letters += JSON.stringify(edit).length;
    if (sent.length > 0 && letters > MOST_SENT) break;
    sent.push(edit);
  }
  return sent;
}
