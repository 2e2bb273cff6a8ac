import { Pane, arrange, el } from "../../dom";
import type { RunFacts } from "../api";
import { bar } from "../bar";
import type { Screen } from "../main";
import { type Store, isComputing } from "../store";
import { facts, reviewed, started, stateText } from "../texts";

/** All runs, the newest first. */
export function runsScreen(store: Store): Screen {
  const list = el("ul", { class: "cards runs" });
  const begin = el("p", { class: "row" });
  const create = el("a", { class: "button main", href: "#/new" }, "New: choose a folder");
  const head = el("div", { class: "tools head" }, el("h1", {}, "Runs"));
  const empty = el(
    "section",
    { class: "start", hidden: true },
    el("h2", {}, "Nothing here yet"),
    el("p", {}, "Choose a folder of images: propos sorts them into clusters of images that look alike, and you name and correct the clusters. Your images are only read."),
    begin,
  );
  const content = el("div", { class: "screen" }, head, empty, list);
  const cards = new Map<string, Card>();
  function update(): void {
    if (store.state === null) return;
    const { runs } = store.state;
    empty.hidden = runs.length > 0;
    const place = empty.hidden ? head : begin;
    if (create.parentElement !== place) place.append(create);
    for (const run of runs) {
      if (!cards.has(run.name)) cards.set(run.name, new Card());
      cards.get(run.name)?.show(run);
    }
    arrange(list, runs.map((run) => (cards.get(run.name) as Card).element));
  }
  return { title: "Runs", content, update };
}

/** The card of a run; progress is updated without touching what may have the focus. */
class Card {
  private readonly progress = el("div", { class: "live" });
  private readonly body = el("div");
  private readonly reviewed = el("p", { class: "quiet" });
  readonly element = el("li", {}, el("article", { class: "card" }, this.body, this.progress));
  private readonly panes = [new Pane(this.body), new Pane(this.progress)] as const;

  show(run: RunFacts): void {
    const { progress, reviewed: _, ...rest } = run; // what changes often is not in the body: a link that is replaced cannot be clicked
    const live = isComputing(run);
    this.panes[0].show({ ...rest, state: live ? "live" : run.state }, () => content(run, this.reviewed));
    this.reviewed.textContent = reviewed(run);
    this.panes[1].show([run.state, progress, run.message], () => (run.state === "finished" ? [] : [el("p", {}, stateText(run)), bar(run)]));
  }
}

function content(run: RunFacts, soFar: HTMLElement): HTMLElement[] {
  const address = `run/${encodeURIComponent(run.name)}/`;
  const open = run.state === "finished" && run.page === true;
  const more = `#/run/${encodeURIComponent(run.name)}`;
  const shown = run.picture ? el("span", { class: "strip", "aria-hidden": "true" }, tiles(run, address + run.picture)) : null;
  return [
    el("a", { class: "whole", href: open ? address : more }, shown, el("h2", {}, run.title)),
    el("p", { class: "quiet" }, [run.name, started(run)].filter((part) => part !== "").join(" · ")),
    el("p", {}, facts(run)),
    ...(run.state === "finished" ? [soFar] : []),
    el(
      "p",
      { class: "row" },
      open && el("a", { class: "button", href: address, "aria-label": `Review ${run.name}` }, "Review"),
      el("a", { class: "button", href: more, "aria-label": `${open ? "Learn, export" : "Show"} ${run.name}` }, open ? "Learn, export …" : "Show"),
    ),
  ];
}

const [COLUMNS, TYPICAL, SIDE] = [32, 12, 64]; // of a sheet of thumbnails, which begins with each cluster's typical images

/** A typical image of each of the first clusters, cut out of the run's first sheet. */
function tiles({ images, clusters }: RunFacts, sheet: string): HTMLElement[] {
  const most = Math.min(8, Number(clusters ?? 0), Math.floor((images ?? 0) / TYPICAL));
  return Array.from({ length: most }, (_, cluster) => {
    const tile = el("span", { class: "tile" });
    tile.style.backgroundImage = `url("${sheet}")`;
    tile.style.backgroundSize = `${SIDE * COLUMNS}px auto`;
    tile.style.backgroundPosition = `${-SIDE * ((cluster * TYPICAL) % COLUMNS)}px ${-SIDE * Math.floor((cluster * TYPICAL) / COLUMNS)}px`;
    return tile;
  });
}
