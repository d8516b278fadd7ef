// Requests: how many of each endpoint and how long they took, the slowest of them, and what each
// one's threads did for it.
import { endpointNumber } from './measure';
import type { Header, Profile, Span } from './profile';
import { type Entry, type Split, splitBy, sum, type WallFilter } from './wall';

/** Whether the requests of endpoints were timed. Those from stacks have no requests. */
export function isTimed(header: Header): boolean {
  return !header.endpointsNote;
}

/** Requests of one endpoint. */
export interface EndpointRow {
  /** The endpoint's number, from 1 on; 0: it is not known. */
  endpoint: number;
  name: string;
  /** Number of requests, and of those listed in the recording. */
  requests: number;
  kept: number;
  p50: number;
  p95: number;
  p99: number;
  longest: number;
  /** Their durations, all together. */
  total: number;
  /** Wall time by cause of the threads that worked for the endpoint; null if none was seen. */
  split: Split | null;
}

export const NO_ENDPOINT = '(no endpoint)';

/** The name of an endpoint by its number. */
export function endpointName(profile: Profile, number: number): string {
  return number === 0 ? NO_ENDPOINT : (profile.header.endpoints[number - 1] ?? NO_ENDPOINT);
}

/** Whether a request overlaps a part of the time. */
function overlaps(profile: Profile, i: number, during: Span | null): boolean {
  if (!during) return true;
  const from = profile.requests.time[i]!;
  return from < during.to && from + profile.requests.duration[i]! >= during.from;
}

/**
 * One row for each endpoint that had requests or work, slowest first. Requests and wall time are
 * those of the filter's part of the time; its endpoint and request do not matter.
 */
export function endpointRows(profile: Profile, filter: WallFilter): EndpointRow[] {
  const lists = byEndpoint(profile, filter.during);
  const all = { ...filter, endpoint: null, request: 0 };
  const splits = splitBy(profile, all, ({ of, i }) => of.endpoint[i]! || -1);
  const numbers = new Set([...lists.keys(), ...splits.keys()]);
  const rows = [...numbers].map((endpoint) => ({
    endpoint,
    name: endpointName(profile, endpoint),
    ...latencies(profile, lists.get(endpoint) ?? []),
    split: splits.get(endpoint) ?? null,
  }));
  const seen = ({ split }: EndpointRow) => sum(split ?? []);
  return rows.sort((a, b) => b.p95 - a.p95 || b.total - a.total || seen(b) - seen(a));
}

/** Places of the requests of each endpoint. */
export function byEndpoint(profile: Profile, during: Span | null): Map<number, number[]> {
  const lists = new Map<number, number[]>();
  const { requests } = profile;
  for (let i = 0; i < requests.time.length; i++) {
    if (!overlaps(profile, i, during)) continue;
    const number = requests.endpoint[i]!;
    const list = lists.get(number);
    if (list) list.push(i);
    else lists.set(number, [i]);
  }
  return lists;
}

/** Percentiles of durations, of sorted places that stand for this number of requests. */
function percentilesOf(profile: Profile, sorted: number[], requests: number) {
  const { duration, count } = profile.requests;
  return (percent: number): number => {
    const wanted = Math.max(1, Math.ceil((percent / 100) * requests));
    let seen = 0;
    for (const i of sorted) {
      seen += count[i]!;
      if (seen >= wanted) return duration[i]!;
    }
    return 0;
  };
}

/** Percentiles of the durations of some requests; sorts their places. */
export function percentiles(profile: Profile, list: number[], percents: readonly number[]) {
  const { duration, count } = profile.requests;
  const sorted = list.sort((a, b) => duration[a]! - duration[b]!);
  const requests = sorted.reduce((sum, i) => sum + count[i]!, 0);
  return percents.map(percentilesOf(profile, sorted, requests));
}

/** How long some requests took. */
export function latencies(profile: Profile, list: number[]) {
  const { duration, count } = profile.requests;
  const sorted = list.sort((a, b) => duration[a]! - duration[b]!);
  let requests = 0;
  let total = 0;
  for (const i of sorted) {
    requests += count[i]!;
    total += duration[i]! * count[i]!;
  }
  const percentile = percentilesOf(profile, sorted, requests);
  const last = sorted[sorted.length - 1];
  return {
    requests,
    kept: sorted.length,
    p50: percentile(50),
    p95: percentile(95),
    p99: percentile(99),
    longest: last === undefined ? 0 : duration[last]!,
    total,
  };
}

/** Numbers of requests (from 1 on), the slowest first. */
export function slowest(
  profile: Profile,
  endpoint: string | null,
  during: Span | null,
  most: number,
): number[] {
  const number = endpointNumber(profile.header, endpoint);
  const { duration, endpoint: endpoints, time } = profile.requests;
  const chosen: number[] = [];
  for (let i = 0; i < time.length; i++) {
    const wanted = number < 0 || endpoints[i] === number;
    if (wanted && overlaps(profile, i, during)) chosen.push(i);
  }
  chosen.sort((a, b) => duration[b]! - duration[a]! || a - b);
  return chosen.slice(0, most).map((i) => i + 1);
}

/** Wall time by cause of each of some requests. */
export function splitsOfRequests(profile: Profile, numbers: readonly number[]): Map<number, Split> {
  const wanted = new Set(numbers);
  const everything: WallFilter = {
    threads: new Uint8Array(profile.threads.name.length).fill(1),
    endpoint: null,
    idle: true,
    during: null,
    request: 0,
  };
  return splitBy(profile, everything, ({ of, i }) => {
    const number = of.request[i]!;
    return wanted.has(number) ? number : -1;
  });
}

/** The time of a request. */
export function spanOf(profile: Profile, request: number): Span | null {
  const { time, duration } = profile.requests;
  const i = request - 1;
  if (!(i >= 0 && i < time.length)) return null;
  return { from: time[i]!, to: time[i]! + Math.max(1, duration[i]!) };
}

/** Id of its trace; empty without a trace. */
export function traceOf(profile: Profile, request: number): string {
  const parts = profile.requests.trace.map((part) => part[request - 1] ?? 0);
  if (parts.every((part) => part === 0)) return '';
  return parts.map((part) => part.toString(16).padStart(8, '0')).join('');
}

/** What a thread did for a request, in the order of time. */
export interface Work {
  thread: number;
  split: Split;
  steps: { from: number; to: number; cause: number }[];
}

/** Maximum number of steps of one thread: a longer row is not readable. */
const STEPS_MAX = 2000;

/** Adds an entry to the work of its thread. */
export function addWork(
  profile: Profile,
  works: Map<number, Work>,
  { cause, of, i, isLook, weight }: Entry,
  causes: number,
): void {
  const thread = of.thread[i]!;
  let work = works.get(thread);
  if (!work) works.set(thread, (work = { thread, split: new Float64Array(causes), steps: [] }));
  work.split[cause]! += weight;
  if (work.steps.length >= STEPS_MAX) return;
  const time = of.time[i]!;
  if (isLook) {
    const one = weight / Math.max(1, of.count[i]!);
    work.steps.push({ from: time, to: time + (profile.wall?.duration[i] ?? 0) + one, cause });
  } else work.steps.push({ from: time - weight, to: time, cause });
}
