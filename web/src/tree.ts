type Merge = readonly [id: number, main: number, other: number];

/** The tree of clusters, as `propos.runs.tree` describes it. */
export class Tree {
  /** The ids of all nodes. */
  readonly ids: readonly number[];
  /** The node of all images. */
  readonly root: number;
  readonly children = new Map<number, readonly [main: number, other: number]>();
  readonly parent = new Map<number, number>();

  constructor(
    readonly leaves: readonly number[],
    readonly merges: readonly Merge[], // from fine to coarse
    readonly leaf: ArrayLike<number>, // each image's place in leaves
  ) {
    this.ids = [...leaves, ...merges.map(([id]) => id)];
    this.root = this.ids[this.ids.length - 1] as number;
    for (const [id, main, other] of merges) {
      this.children.set(id, [main, other]);
      this.parent.set(main, id).set(other, id);
    }
  }

  /** All ancestors of some nodes. */
  above(nodes: Iterable<number>): Set<number> {
    const found = new Set<number>();
    for (const node of nodes) for (let up = this.parent.get(node); up !== undefined && !found.has(up); up = this.parent.get(up)) found.add(up);
    return found;
  }

  /** A node and all its descendants. */
  under(node: number): number[] {
    const found = [node];
    for (const each of found) found.push(...(this.children.get(each) ?? []));
    return found;
  }

  /** The open nodes of the coarsest cut with this number of clusters. */
  coarsest(clusters: number): number[] {
    return this.merges.slice(this.merges.length - clusters + 1).map(([id]) => id);
  }

  /** The cluster of each node in a branch whose given nodes are open, and the nodes that are open then. */
  cut(node: number, open: ReadonlySet<number>): { cluster: Map<number, number>; divided: number[] } {
    const [cluster, divided, pending] = [new Map<number, number>(), [] as number[], [node]];
    for (let each = pending.pop(); each !== undefined; each = pending.pop()) {
      const children = this.children.get(each);
      if (children !== undefined && open.has(each)) {
        divided.push(each);
        pending.push(...children);
      } else for (const below of this.under(each)) cluster.set(below, each);
    }
    for (const each of [...divided].reverse()) cluster.set(each, cluster.get((this.children.get(each) as readonly number[])[0] as number) as number);
    return { cluster, divided };
  }
}
