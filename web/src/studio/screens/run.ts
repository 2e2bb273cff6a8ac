import { lineChart } from "../../chart";
import { Pane, el } from "../../dom";
import type { Chart } from "../../payload";
import { askAgreement } from "../../review/dialogs";
import { actionButton, notice, perform } from "../actions";
import { type Folder, type RunFacts, get, identity, post } from "../api";
import { bar } from "../bar";
import type { Screen } from "../main";
import { sample } from "../picker";
import { type Store, isComputing } from "../store";
import { facts, leftText, reviewed, started, stateText } from "../texts";
import { works } from "../works";

const EVERY = 4_000; // milliseconds between two previews

/** One run: its progress while it computes, and the next steps when it is finished. */
export function runScreen(store: Store, name: string): Screen {
  const said = notice();
  const parts = { head: el("div"), live: el("div", { class: "live" }), steps: el("div"), preview: el("div", { class: "preview" }), files: el("div") };
  const panes = { head: new Pane(parts.head), live: new Pane(parts.live), steps: new Pane(parts.steps), preview: new Pane(parts.preview), files: new Pane(parts.files) };
  const status = el("p", { class: "lead", role: "status" });
  const soFar = el("span");
  const content = el("div", { class: "screen" }, parts.head, status, parts.live, parts.steps, said, parts.files, parts.preview);
  const preview = new Preview(name, panes.preview);

  function update(): void {
    if (store.state === null) return;
    const run = store.run(name);
    if (run === undefined) {
      panes.head.show("gone", () => [el("h1", {}, name), el("p", {}, "This run is not here: it was deleted or renamed."), el("a", { href: "#/" }, "All runs")]);
      for (const pane of [panes.live, panes.steps, panes.files, panes.preview]) pane.show(null, () => []);
      status.textContent = "";
      return;
    }
    const { progress, state, page, message, earlier } = run;
    panes.head.show([run.title, run.images, run.clusters], () => [el("h1", {}, run.title), el("p", { class: "quiet" }, [name, started(run), facts(run)].filter((part) => part !== "").join(" · "))]);
    const words = run.state === "working" && progress ? progress.doing : stateText(run);
    if (status.textContent !== words) status.textContent = words; // read out only when it changes
    panes.live.show([run.state, progress], () => (progress && isComputing(run) ? [bar(run), el("p", { class: "quiet" }, leftText(progress))] : [bar(run)]));
    soFar.textContent = `So far: ${reviewed(run)}.`;
    // Nothing else: a button that is replaced while it is pressed does nothing.
    panes.steps.show([state, page, message, earlier], () => [message ? el("p", { class: "warn" }, message) : null, ...steps(store, run, said, soFar)]);
    const files = store.state.work.filter((work) => work.run === name);
    panes.files.show(files, () => works(files));
    preview.follow(run);
  }
  return { title: name, content, update };
}

/** The buttons for the state that a run is in. */
function steps(store: Store, run: RunFacts, said: HTMLElement, soFar: HTMLElement): HTMLElement[] {
  const { name } = run;
  const act = (route: string): (() => Promise<void>) => async () => {
    await post(`api/${route}`, { name });
    await store.look();
  };
  const pause = actionButton(run.state === "stopping" ? "Stop now" : run.state === "waiting" ? "Remove from the queue" : "Pause", said, act("pause"));
  const resume = actionButton("Resume", said, act("resume"), { class: "main" });
  const remove = actionButton("Move to trash", said, async () =>
    askAgreement({ title: `Move ${name} to the trash?`, words: "The run and its corrections can be restored. Your images stay where they are.", yes: "Move to trash" }, () => void perform(remove, said, trash)),
  );
  const trash = async (): Promise<void> => {
    await act("delete")();
    location.hash = "#/";
  };
  if (run.state === "elsewhere") return [];
  if (isComputing(run)) return [el("p", { class: "row" }, pause), el("p", { class: "quiet" }, "You can close this page: the run continues.")];
  if (run.state !== "finished") return [el("p", { class: "row" }, ...(run.state === "damaged" ? [] : [resume]), remove)];
  return run.page === true ? [next(store, run, said, soFar), el("p", { class: "row" }, remove)] : [el("p", {}, "Its page is not written yet."), el("p", { class: "row" }, actionButton("Write the page", said, act("resume"), { class: "main" }), remove)];
}

/** What comes after a finished run, in order. */
function next(store: Store, run: RunFacts, said: HTMLElement, soFar: HTMLElement): HTMLElement {
  const { name } = run;
  const address = `run/${encodeURIComponent(name)}/`;
  const own = `#/run/${encodeURIComponent(name)}`;
  const id = identity();
  const learn = actionButton("Learn", said, async () => {
    const { run: made } = await post<{ run: string }>("api/learn", { id, name });
    await store.look();
    location.hash = `#/run/${encodeURIComponent(made)}`;
  });
  const step = (button: HTMLElement, text: string, why: string | HTMLElement): HTMLElement => el("li", {}, button, el("p", {}, text), el("p", { class: "quiet why" }, why));
  return el(
    "section",
    { class: "start", "aria-label": "Next steps" },
    el(
      "ol",
      {},
      step(el("a", { class: "button main", href: address }, "Review"), "Name, merge and correct the clusters.", soFar),
      step(learn, "Cluster again with your corrections.", "A second run, whose page shows what changed. Images that you have not confirmed may move. This run stays as it is."),
      step(el("a", { class: "button", href: `${own}/export` }, "Export"), "Sort the images into folders, or write a table.", "At any time, with the corrections made so far."),
      step(el("a", { class: "button", href: `${own}/predict` }, "Predict"), "Assign the images of another folder.", "In seconds, without a new run."),
    ),
    run.earlier === null ? null : el("p", {}, el("a", { href: `${address}#/comparison` }, `What changed since ${run.earlier}`)),
  );
}

interface Curves {
  epochs: number[];
  charts: Chart[];
  picture: number | null; // when the picture of the clusters was drawn
}

/** Pictures of the folder, and the curves of training while it trains. */
class Preview {
  private last = 0;
  private pictures: string[] | null = null;
  private curves: Curves | null = null;

  constructor(
    private readonly name: string,
    private readonly pane: Pane,
  ) {}

  follow(run: RunFacts): void {
    if (run.state === "finished") return this.pane.show("finished", () => []);
    if (this.pictures === null && run.source) {
      this.pictures = [];
      void get<Folder>("api/folder", { path: run.source }).then(({ pictures }) => this.show(() => (this.pictures = pictures)), () => {});
    }
    if (run.state !== "working" || Date.now() < this.last + EVERY) return;
    this.last = Date.now();
    void get<Curves>("api/preview", { name: this.name }).then((curves) => this.show(() => (this.curves = curves)), () => {});
  }

  private show(change: () => void): void {
    change();
    const { epochs, charts: all, picture } = this.curves ?? { epochs: [], charts: [], picture: null };
    const charts = all.map((chart) => measured(chart, epochs)).filter(({ xs }) => xs.length > 1);
    const pictures = this.pictures ?? [];
    const drawn = (kind: string): string => `api/drawn/${kind}?${new URLSearchParams({ name: this.name, at: String(picture) })}`;
    this.pane.show([pictures, epochs.length, picture], () => [
      ...(picture === null ? [] : [el("section", {}, el("h2", {}, "Clusters so far"), el("p", { class: "quiet" }, "A row for each cluster: its most typical images."), el("img", { class: "clusters", src: drawn("clusters"), alt: "Typical images of each cluster so far" })), el("section", {}, el("h2", {}, "Map so far"), el("p", { class: "quiet" }, "A dot for each image, in its cluster's colour, seen from where the clusters lie farthest apart."), el("img", { class: "clusters", src: drawn("map"), alt: "Map of the images so far", width: 600, height: 600 }))]),
      ...(pictures.length === 0 || picture !== null ? [] : [el("section", { class: "wide" }, el("h2", {}, "Some of the images"), el("div", { class: "samples" }, pictures.map(sample)))]),
      ...(charts.length === 0 ? [] : [el("section", { class: "wide" }, el("h2", {}, "Training so far"), el("div", { class: "charts" }, charts.map((chart) => lineChart({ ...chart, xLabel: "epoch" }))))]),
    ]);
  }
}

/** A chart of the epochs that have a value: clusters are measured every few epochs. */
function measured(chart: Chart, epochs: number[]): Chart & { xs: number[] } {
  const places = epochs.map((_, place) => place).filter((place) => Object.values(chart.curves).some((curve) => curve[place] !== null));
  const curves = Object.entries(chart.curves).map(([name, curve]) => [name, places.map((place) => curve[place] ?? null)] as const);
  return { ...chart, xs: places.map((place) => epochs[place] as number), curves: Object.fromEntries(curves) };
}
