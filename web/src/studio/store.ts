import { type RunFacts, type State, ask, messageOf } from "./api";

const [BUSY, IDLE] = [1_000, 3_000]; // milliseconds between two looks
const COMPUTING = new Set(["waiting", "working", "stopping", "elsewhere"]);

export const isComputing = ({ state }: { state: string }): boolean => COMPUTING.has(state);

/** What the server knows, asked again and again while the window is seen. */
export class Store {
  state: State | null = null;
  /** Why the server does not answer; null where it does. */
  trouble: string | null = null;
  private version = "";
  private timer = 0;
  private readonly listeners: (() => void)[] = [];

  start(): void {
    document.addEventListener("visibilitychange", () => !document.hidden && void this.look());
    void this.look();
  }

  listen(listener: () => void): void {
    this.listeners.push(listener);
  }

  run(name: string): RunFacts | undefined {
    return this.state?.runs.find((run) => run.name === name);
  }

  /** Ask now, as after an action. */
  async look(): Promise<void> {
    clearTimeout(this.timer);
    try {
      const answer = await ask(`api/state?known=${this.version}`, {});
      const changed = answer.status !== 204;
      if (changed) {
        this.version = answer.headers.get("X-Version") ?? "";
        this.state = (await answer.json()) as State;
      }
      if (changed || this.trouble !== null) this.say(null);
    } catch (error) {
      this.say(messageOf(error));
    }
    const busy = this.state !== null && [...this.state.runs, ...this.state.work].some(isComputing);
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => !document.hidden && void this.look(), busy ? BUSY : IDLE);
  }

  private say(trouble: string | null): void {
    this.trouble = trouble;
    for (const listener of this.listeners) listener();
  }
}
