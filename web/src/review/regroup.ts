import type { Cluster } from "../payload";
import type { Report } from "../report";
import { JUNK, type Replay } from "./replay";

const [TYPICAL, BORDERLINE, ODD] = [12, 24, 24];

/**
 * Let a report show the clusters as they are by now; of those whose images stayed the same, only what they are called.
 * A cluster that lost all its images is none; those that training left empty stay.
 */
export function regroup(report: Report, state: Replay, empty: ReadonlySet<number>): void {
  const [before, now] = [report.cluster, state.cluster()];
  const touched = new Set<number>();
  for (let image = 0; image < report.count; image++) {
    if (now[image] !== before[image]) touched.add(before[image] as number).add(now[image] as number);
  }
  const near = membersOf(now, touched, report.nearestFirst);
  const doubtful = membersOf(now, touched, report.doubtfulFirst);
  const standing = state.standingIds().add(JUNK);
  const wanted = new Set([...report.byId.keys(), ...empty, ...touched]);
  const clusters = [...wanted].flatMap((id) => {
    const gone = touched.has(id) && near.get(id)?.length === 0 && !empty.has(id);
    if (!standing.has(id) || gone) return [];
    const known = touched.has(id) ? undefined : report.byId.get(id);
    const name = id === JUNK ? "Junk" : (state.names.get(id) ?? null);
    if (known?.name === name) return [known];
    return [{ ...(known ?? described(report, id, near.get(id) ?? [], doubtful.get(id) ?? [])), name }];
  });
  report.cluster = now;
  report.clusters = clusters.sort((a, b) => place(a) - place(b));
  report.byId = new Map(report.clusters.map((cluster) => [cluster.id, cluster]));
  report.descriptions = state.descriptions;
}

/** Junk stands last. */
const place = ({ id }: Cluster): number => (id === JUNK ? Number.POSITIVE_INFINITY : id);

/** The images of some clusters, each cluster's in the order given. */
function membersOf(cluster: Int32Array, wanted: ReadonlySet<number>, order: () => Int32Array): Map<number, number[]> {
  const members = new Map<number, number[]>([...wanted].map((id) => [id, []]));
  if (wanted.size > 0) for (const image of order()) members.get(cluster[image] as number)?.push(image);
  return members;
}

/** A cluster from its images; distance and confidence are those of when the page was written. */
function described(report: Report, id: number, near: number[], doubtful: number[]): Cluster {
  const { distance } = report;
  const far = near.reduce((sum, image) => sum + (distance[image] as number), 0);
  return {
    id,
    name: null,
    size: near.length,
    tightness: near.length === 0 ? 0 : 1 - far / near.length,
    typical: near.slice(0, TYPICAL),
    borderline: doubtful.slice(0, BORDERLINE),
    odd: near.slice(-ODD).reverse(),
    nearest: report.firstNearest.get(id) ?? [],
    ...commonest(report, near),
  };
}

function commonest(report: Report, members: number[]): { label: string | null; share: number | null } {
  if (report.labels === null || members.length === 0) return { label: null, share: null };
  const { of, names } = report.labels;
  const counts = new Uint32Array(names.length);
  for (const image of members) counts[of[image] as number] = (counts[of[image] as number] as number) + 1;
  const most = counts.reduce((best, each, at) => (each > (counts[best] as number) ? at : best), 0);
  return { label: names[most] ?? null, share: (counts[most] as number) / members.length };
}
