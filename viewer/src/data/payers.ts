// Effect of safepoints: on running requests, and on threads that were sampled in them.
import type { Profile, Span } from './profile';
import { byEndpoint } from './requests';
import { causesOf, splitBy, sum, type WallFilter } from './wall';

/** What safepoints took from the requests of one endpoint. */
export interface Payer {
  /** The endpoint's number, from 1 on; 0: it is not known. */
  endpoint: number;
  requests: number;
  /** Requests that were running at a safepoint. */
  stopped: number;
  /** How long they took, all together. */
  total: number;
  /** Of that, time at safepoints and until they were reached. */
  lost: number;
  /** The most that one request lost so. */
  most: number;
}

/** Spans that do not overlap, in their order, and the sum of all before each. */
interface Stops {
  from: number[];
  to: number[];
  before: number[];
}

/** Safepoints whose times are known. */
function stopsOf({ stops }: Profile): Stops {
  const isOne = (i: number) => stops.count[i] === 1 && stops.known[i] === 1;
  const places = Array.from(stops.time.keys()).filter(isOne);
  places.sort((a, b) => stops.time[a]! - stops.time[b]!);
  const all: Stops = { from: [], to: [], before: [] };
  let before = 0;
  for (const i of places) {
    const from = stops.time[i]!;
    const to = from + stops.reaching[i]! + stops.operating[i]!;
    const last = all.to.length - 1;
    if (last >= 0 && from < all.to[last]!) {
      const more = Math.max(0, to - all.to[last]!);
      all.to[last]! += more;
      before += more;
      continue;
    }
    all.from.push(from);
    all.to.push(to);
    all.before.push(before);
    before += to - from;
  }
  return all;
}

/** The time of such spans before `at`. */
function until({ from, to, before }: Stops, at: number): number {
  let [low, high] = [0, from.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (from[middle]! < at) low = middle + 1;
    else high = middle;
  }
  if (low === 0) return 0;
  return before[low - 1]! + Math.min(at, to[low - 1]!) - from[low - 1]!;
}

/**
 * Endpoints whose requests lost time to safepoints, the largest loss first. The loss is an upper
 * bound: a thread that waited for something else would have waited without the safepoint, too.
 */
export function payersOf(profile: Profile, during: Span | null): Payer[] {
  const stops = stopsOf(profile);
  const { time, duration, count } = profile.requests;
  const rows: Payer[] = [];
  for (const [endpoint, list] of byEndpoint(profile, during)) {
    const row: Payer = { endpoint, requests: 0, stopped: 0, total: 0, lost: 0, most: 0 };
    for (const i of list) {
      const lost = until(stops, time[i]! + duration[i]!) - until(stops, time[i]!);
      row.requests += count[i]!;
      row.total += duration[i]! * count[i]!;
      row.lost += lost * count[i]!;
      row.most = Math.max(row.most, lost);
      if (lost > 0) row.stopped += count[i]!;
    }
    if (row.stopped > 0) rows.push(row);
  }
  return rows.sort((a, b) => b.lost - a.lost);
}

/** Wall time of a thread group, and the part of it at safepoints. */
export interface PayingThreads {
  key: number;
  lost: number;
  total: number;
}

/** Thread groups that were sampled at safepoints, the longest time first. */
export function payingThreads(
  profile: Profile,
  filter: WallFilter,
  groupOf: ArrayLike<number>,
): PayingThreads[] {
  const cause = causesOf(profile).indexOf('safepoint');
  if (cause < 0) return [];
  const all = { ...filter, idle: true };
  const splits = splitBy(profile, all, ({ of, i }) => groupOf[of.thread[i]!]!);
  const rows = [...splits].map(([key, split]) => ({
    key,
    lost: split[cause]!,
    total: sum(split),
  }));
  return rows.filter(({ lost }) => lost > 0).sort((a, b) => b.lost - a.lost);
}
