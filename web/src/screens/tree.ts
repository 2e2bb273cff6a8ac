import { type Child, Pane, arrange, el } from "../dom";
import type { Report } from "../report";
import type { Actions } from "../review/actions";
import { isCluster } from "../review/texts";
import type { Screen } from "../shell";
import { swatch } from "../swatch";
import { picture } from "../thumb";
import type { Tree } from "../tree";
import { counted, images } from "../format";

const TYPICAL = 6;
const WAIT = 500; // milliseconds after the slider moved until its cut is saved
const HOW = "Move the slider for all clusters, or divide and join single ones. Images that you moved stay where you put them; if you divide a cluster, review again what you had confirmed in it.";
const KEYS = "Arrows move; right divides, left joins, Enter opens a cluster, R names one.";

/** The tree of clusters: a slider from coarse to fine, and the branches, each as coarse or fine as wanted. */
export function treeScreen(report: Report, actions: Actions): Screen {
  const { tree } = report.review;
  if (tree === null || tree.merges.length === 0) {
    return { title: () => "Tree", content: el("div", { class: "screen" }, el("h1", {}, "Tree"), el("p", { class: "lead" }, "The clusters have no tree.")) };
  }
  const lead = el("p", { class: "lead", role: "status" });
  const slider = el("input", { type: "range", id: "granularity", min: 1, max: tree.leaves.length, "aria-describedby": "coarse-fine" });
  const trained = el("button", { type: "button", click: () => actions.cut(tree.root, [...tree.above(report.review.trained)]) }, `As trained: ${report.review.trained.length}`);
  const list = el("ul", { class: "tree", role: "tree", "aria-label": "Clusters" });
  const rows = new Map<number, Row>();
  let shown: Node[] = [];
  let timer = 0;
  const apart = new Pane(el("p", { class: "quiet" }));
  const content = el(
    "div",
    { class: "screen" },
    el("h1", {}, "Tree"),
    lead,
    el("p", { class: "quiet" }, HOW),
    el("div", { class: "tools granularity" }, el("label", { for: "granularity" }, "Coarse"), slider, el("span", { id: "coarse-fine" }, "Fine"), trained),
    el("p", { class: "quiet keys-of" }, KEYS),
    list,
    apart.element,
  );

  function corrected(): boolean {
    shown = nodesOf(report, tree as Tree);
    const parts = shown.filter(({ open }) => !open).length;
    slider.value = String(parts);
    lead.textContent = `${counted(parts, "cluster")}; from 1 to ${(tree as Tree).leaves.length} are possible.`;
    for (const id of rows.keys()) if (!shown.some((node) => node.id === id)) rows.delete(id);
    arrange(list, shown.map((node) => rowOf(node).show(node)));
    const nodes = new Set((tree as Tree).ids);
    const others = report.clusters.filter(({ id }) => isCluster(id) && !nodes.has(id)).map(({ id, name }) => [id, name] as const);
    apart.show(others, () => (others.length === 0 ? [] : ["Split off by hand, in no branch: ", ...others.flatMap(([id], at) => [at > 0 && ", ", el("a", { href: `#/cluster/${id}` }, report.clusterName(id))])]));
    if (list.querySelector('[tabindex="0"]') === null) (list.firstElementChild as HTMLElement).tabIndex = 0;
    return true;
  }

  function rowOf(node: Node): Row {
    const row = rows.get(node.id) ?? new Row(report, node.id, turn);
    rows.set(node.id, row);
    return row;
  }

  /** Divide a cluster into its two parts, or join what is under a node. */
  function turn(id: number, open: boolean): void {
    actions.cut(id, open ? [id] : []);
    focusOn(id);
  }

  function focusOn(id: number): void {
    for (const each of list.children) (each as HTMLElement).tabIndex = -1;
    const row = rows.get(id)?.element;
    if (row === undefined) return;
    row.tabIndex = 0;
    row.focus();
  }

  function press(event: KeyboardEvent): void {
    const at = shown.findIndex(({ id }) => rows.get(id)?.element === document.activeElement);
    const node = shown[at];
    if (node === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const { children, parent } = tree as Tree;
    const move = (to: number | undefined): void => void (to !== undefined && focusOn(to));
    const deeds: Record<string, () => void> = {
      ArrowDown: () => move(shown[at + 1]?.id),
      ArrowUp: () => move(shown[at - 1]?.id),
      Home: () => move(shown[0]?.id),
      End: () => move(shown.at(-1)?.id),
      ArrowRight: () => (node.open ? move(children.get(node.id)?.[0]) : children.has(node.id) && turn(node.id, true)),
      ArrowLeft: () => (node.open ? turn(node.id, false) : move(parent.get(node.id))),
      Enter: () => void (!node.open && (location.hash = `#/cluster/${node.id}`)),
      r: () => actions.rename(node.id),
    };
    const deed = deeds[event.key];
    if (deed === undefined) return;
    event.preventDefault();
    deed();
  }

  slider.addEventListener("input", () => {
    lead.textContent = `${counted(Number(slider.value), "cluster")}; from 1 to ${tree.leaves.length} are possible.`;
    clearTimeout(timer);
    timer = window.setTimeout(() => actions.cut(tree.root, tree.coarsest(Number(slider.value))), WAIT);
  });
  list.addEventListener("keydown", press);
  corrected();
  return { title: () => "Tree", content, corrected };
}

/** A node that is shown: a cluster, or an open node above some. */
interface Node {
  id: number;
  level: number;
  open: boolean;
  parts: number; // clusters under it
  size: number;
}

/** The clusters of the tree and what is above them, from the root down. */
function nodesOf(report: Report, tree: Tree): Node[] {
  const nodes: Node[] = [];
  const visit = (id: number, level: number): { parts: number; size: number } => {
    const children = report.review.isOpen(id) ? tree.children.get(id) : undefined;
    const node = { id, level, open: children !== undefined, parts: 1, size: report.clusterOf(id)?.size ?? 0 };
    nodes.push(node);
    if (children === undefined) return node;
    const [one, other] = [visit(children[0], level + 1), visit(children[1], level + 1)];
    return Object.assign(node, { parts: one.parts + other.parts, size: one.size + other.size });
  };
  visit(tree.root, 1);
  return nodes;
}

class Row {
  readonly element: HTMLElement;
  private readonly pane: Pane;

  constructor(
    private readonly report: Report,
    private readonly id: number,
    private readonly turn: (id: number, open: boolean) => void,
  ) {
    this.element = el("li", { role: "treeitem", tabindex: -1 });
    this.pane = new Pane(this.element);
  }

  show(node: Node): HTMLElement {
    const { element, report, id } = this;
    const divisible = report.review.tree?.children.has(id) ?? false;
    element.style.setProperty("--level", String(node.level - 1));
    element.setAttribute("aria-level", String(node.level));
    if (divisible) element.setAttribute("aria-expanded", String(node.open));
    element.classList.toggle("inner", node.open);
    const [name, typical] = [report.review.nameOf(id), report.clusterOf(id)?.typical.slice(0, TYPICAL) ?? []];
    this.pane.show([node, name, typical, this.facts(node)], () => this.inside(node, name, typical, divisible));
    return element;
  }

  private facts({ open, size, parts }: Node): string {
    const [own, whole] = [this.report.clusterOf(this.id), this.report.review.partOf(this.id)];
    if (open) return `${images(size)} in ${counted(parts, "cluster")}`;
    return own === undefined && whole !== null && whole !== this.id ? `merged into ${this.report.clusterName(whole)}` : images(size);
  }

  private inside(node: Node, name: string | null, typical: number[], divisible: boolean): Child[] {
    const [words, sign] = node.open ? ["Join", "−"] : ["Divide", "+"];
    const toggle = el("button", { type: "button", tabindex: -1, "aria-label": `${words} ${name ?? `cluster ${this.id}`}`, title: words, click: () => this.turn(this.id, !node.open) }, sign);
    const quiet = el("span", { class: "quiet" }, this.facts(node));
    const title = node.open ? name !== null && el("span", {}, name) : el("a", { href: `#/cluster/${this.id}`, tabindex: -1 }, swatch(this.id), name ?? `Cluster ${this.id}`);
    return [divisible ? toggle : el("span", { class: "toggle" }), typical.length > 0 && el("span", { class: "mosaic strip" }, typical.map((image) => picture(this.report, image))), title, quiet];
  }
}
