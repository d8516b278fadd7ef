// One request over its spans and threads: when each span was at work, and what its threads did then.
import type { Profile, Span } from './profile';
import { addWork, spanOf, traceOf, type Work } from './requests';
import { causesOf, eachWall, sum, type WallFilter } from './wall';

/** A span of the trace, as one bar. */
export interface SpanBar {
  /** The request's own span, one inside of it, or another request of the same trace. */
  kind: 'request' | 'inner' | 'other';
  /** Of an inner span its id, else empty. */
  id: string;
  /** Of a request its number, from 1 on. */
  request: number;
  /** Begin and end. For an inner span without recorded times: the first and last sample of it. */
  from: number;
  to: number;
  /** Whether the program reported these times. */
  isTold: boolean;
  /** What its threads did for it, the busiest first. */
  work: Work[];
}

/** Maximum number of other requests of the trace. */
const OTHERS_MAX = 50;

/** The request's own span first, then all others of its trace in the order of time. */
export function spansOf(profile: Profile, request: number): SpanBar[] {
  const whole = spanOf(profile, request);
  if (!whole) return [];
  const bySpan = worksBySpan(profile, request);
  const own = [...(bySpan.get(0)?.values() ?? [])];
  const bars: SpanBar[] = [
    { kind: 'request', id: '', request, ...whole, isTold: true, work: busiest(own) },
  ];
  for (const number of new Set([...bySpan.keys(), ...toldOf(profile, request)])) {
    if (number === 0) continue;
    const work = busiest([...(bySpan.get(number)?.values() ?? [])]);
    const told = profile.spans.duration[number - 1]! > 0;
    const { from, to } = told ? timesOf(profile, number) : seenOf(work, whole);
    const id = idOf(profile, number);
    bars.push({ kind: 'inner', id, request, from, to, isTold: told, work });
  }
  bars.push(...othersOf(profile, request));
  const [first, ...rest] = bars;
  return [first!, ...rest.sort((a, b) => a.from - b.from || a.to - b.to)];
}

/** Numbers of the request's spans with recorded times, in the order of requests. */
function toldOf({ spans }: Profile, request: number): number[] {
  const { request: of, duration } = spans;
  let [low, high] = [0, of.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (of[middle]! < request) low = middle + 1;
    else high = middle;
  }
  const numbers: number[] = [];
  for (let i = low; i < of.length && of[i] === request; i++)
    if (duration[i]! > 0) numbers.push(i + 1);
  return numbers;
}

function timesOf({ spans }: Profile, number: number): Span {
  const from = spans.time[number - 1]!;
  return { from, to: from + spans.duration[number - 1]! };
}

/** From the first to the last time that a thread was seen at work, within the request. */
function seenOf(work: Work[], whole: Span): Span {
  const steps = work.flatMap(({ steps }) => steps);
  const from = steps.reduce((least, step) => Math.min(least, step.from), whole.to);
  const to = steps.reduce((most, step) => Math.max(most, step.to), whole.from);
  return { from: Math.max(whole.from, from), to: Math.min(whole.to, Math.max(from, to)) };
}

/** By the number of the span, 0 for the request's own, and thread. */
function worksBySpan(profile: Profile, request: number): Map<number, Map<number, Work>> {
  const filter: WallFilter = {
    threads: new Uint8Array(profile.threads.name.length).fill(1),
    endpoint: null,
    idle: true,
    during: null,
    request,
  };
  const causes = causesOf(profile).length;
  const { spans } = profile;
  const found = new Map<number, Map<number, Work>>();
  eachWall(profile, filter, (entry) => {
    const number = (entry.isLook ? spans.ofLook : spans.ofSample)[entry.i] ?? 0;
    let works = found.get(number);
    if (!works) found.set(number, (works = new Map()));
    addWork(profile, works, entry, causes);
  });
  return found;
}

function busiest(works: Work[]): Work[] {
  for (const { steps } of works) steps.sort((a, b) => a.from - b.from);
  return works.sort((a, b) => sum(b.split) - sum(a.split));
}

function idOf({ spans }: Profile, number: number): string {
  const hex = (part: number) => part.toString(16).padStart(8, '0');
  return hex(spans.high[number - 1] ?? 0) + hex(spans.low[number - 1] ?? 0);
}

/** Other requests of the same trace: of a service that calls itself, or of several in one JVM. */
function othersOf(profile: Profile, request: number): SpanBar[] {
  if (traceOf(profile, request) === '') return [];
  const { trace, time } = profile.requests;
  const bars: SpanBar[] = [];
  for (let i = 0; i < time.length && bars.length < OTHERS_MAX; i++) {
    if (i === request - 1) continue;
    if (trace.some((part) => part[i] !== part[request - 1])) continue;
    const own = worksBySpan(profile, i + 1);
    const work = busiest([...own.values()].flatMap((works) => [...works.values()]));
    const times = spanOf(profile, i + 1)!;
    bars.push({ kind: 'other', id: '', request: i + 1, ...times, isTold: true, work });
  }
  return bars;
}
