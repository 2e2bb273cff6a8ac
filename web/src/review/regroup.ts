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
  const members = membersOf(now, touched);
  const standing = state.standingIds().add(JUNK);
  const wanted = new Set([...report.byId.keys(), ...empty, ...touched]);
  const clusters = [...wanted].flatMap((id) => {
    const own = members.get(id) ?? [];
    const gone = touched.has(id) && own.length === 0 && !empty.has(id);
    if (!standing.has(id) || gone) return [];
    const known = touched.has(id) ? undefined : report.byId.get(id);
    const name = id === JUNK ? "Junk" : (state.names.get(id) ?? null);
    return [{ ...(known ?? described(report, id, own)), name }];
  });
  report.cluster = now;
  report.clusters = clusters.sort((a, b) => place(a) - place(b));
  report.byId = new Map(report.clusters.map((cluster) => [cluster.id, cluster]));
  report.descriptions = state.descriptions;
  if (touched.size > 0) recount(report);
}

/** Junk stands last. */
const place = ({ id }: Cluster): number => (id === JUNK ? Number.POSITIVE_INFINITY : id);

function membersOf(cluster: Int32Array, wanted: ReadonlySet<number>): Map<number, number[]> {
  const members = new Map<number, number[]>([...wanted].map((id) => [id, []]));
  if (wanted.size > 0) cluster.forEach((id, image) => members.get(id)?.push(image));
  return members;
}

/** A cluster from its images; distance and confidence are those of when the page was written. */
function described(report: Report, id: number, members: number[]): Cluster {
  const { distance, confidence } = report;
  const near = [...members].sort((a, b) => (distance[a] as number) - (distance[b] as number));
  const doubtful = [...members].sort((a, b) => (confidence[a] as number) - (confidence[b] as number));
  const far = members.reduce((sum, image) => sum + (distance[image] as number), 0);
  return {
    id,
    name: null,
    size: members.length,
    tightness: members.length === 0 ? 0 : 1 - far / members.length,
    typical: near.slice(0, TYPICAL),
    borderline: doubtful.slice(0, BORDERLINE),
    odd: near.slice(-ODD).reverse(),
    nearest: report.firstNearest.get(id) ?? [],
    ...commonest(report, members),
  };
}

function commonest(report: Report, members: number[]): { label: string | null; share: number | null } {
  if (report.labels === null || members.length === 0) return { label: null, share: null };
  const { of, names } = report.labels;
  const counts = new Uint32Array(names.length);
  for (const image of members) counts[of[image] as number] = (counts[of[image] as number] as number) + 1;
  const most = counts.indexOf(Math.max(...counts));
  return { label: names[most] ?? null, share: (counts[most] as number) / members.length };
}

/** Count images by label and cluster again; columns that are new come last. */
function recount(report: Report): void {
  const { labels } = report;
  if (labels === null) return;
  const ids = report.clusters.filter(({ id }) => id !== JUNK).map(({ id }) => id);
  const there = new Set(ids);
  const columns = [...labels.columns.filter((id) => there.has(id)), ...ids.filter((id) => !labels.columns.includes(id))];
  const row = new Map(labels.rows.map((label, at) => [label, at]));
  const column = new Map(columns.map((id, at) => [id, at]));
  const counts = labels.rows.map(() => columns.map(() => 0));
  for (let image = 0; image < report.count; image++) {
    const counted = counts[row.get(labels.of[image] as number) ?? -1];
    const at = column.get(report.cluster[image] as number);
    if (counted !== undefined && at !== undefined) counted[at] = (counted[at] as number) + 1;
  }
  report.labels = { ...labels, columns, counts };
}
