// The two sides of a comparison: which samples belong to which, and what their sums are divided by.
// The slow requests of an endpoint against its usual ones, two recordings in one page, or two ranges of
// one recording.
import { endpointNumber, idleNumber, noSamples } from '../data/measure';
import type { Profile, Samples, Span } from '../data/profile';
import { byEndpoint, percentiles } from '../data/requests';
import { type Base, baseOf, type Per, type Sum } from './statistics';

export interface Sides {
  /** Kind of the sides. */
  of: 'requests' | 'recordings' | 'ranges';
  /** Short names; the second is compared with the first. */
  names: readonly [string, string];
  base: Base;
  /** What is compared with what, in a sentence. */
  slow: SlowAndUsual | null;
  /** The side of a sample: 0 none, 1 the first, 2 the second. */
  side(samples: Samples, i: number): 0 | 1 | 2;
}

/** Which requests are slow and which are usual ones. */
export interface SlowAndUsual {
  /** By the request's number: 0 neither, 1 usual, 2 slow. */
  side: Uint8Array;
  usual: number;
  slow: number;
  /** The slow ones took longer than this, the others were between these. */
  p95: number;
  from: number;
  to: number;
}

/** Slow requests are beyond this percentile, usual ones between these two. */
export const SLOW_FROM = 95;
export const USUAL: readonly [number, number] = [40, 60];

/** The slow and the usual requests of an endpoint; null if there are none of one of them. */
export function slowAndUsual(
  profile: Profile,
  endpoint: string,
  during: Span | null,
): SlowAndUsual | null {
  const number = endpointNumber(profile.header, endpoint);
  const list = byEndpoint(profile, during).get(number) ?? [];
  const { duration } = profile.requests;
  const [from, to, p95] = percentiles(profile, list, [...USUAL, SLOW_FROM]) as [
    number,
    number,
    number,
  ];
  const side = new Uint8Array(duration.length + 1);
  let [usual, slow] = [0, 0];
  for (const i of list) {
    const took = duration[i]!;
    // Where most took the same time, these are the usual ones.
    if (took > Math.max(p95, to)) {
      side[i + 1] = 2;
      slow++;
    } else if (took >= from && took <= to) {
      side[i + 1] = 1;
      usual++;
    }
  }
  return usual > 0 && slow > 0 ? { side, usual, slow, p95, from, to } : null;
}

/** Which side a sample's request is on. */
export function sideOfRequest(of: SlowAndUsual): Sides['side'] {
  return (samples, i) => (of.side[samples.request[i]!] ?? 0) as 0 | 1 | 2;
}

/** Slow vs. typical requests, for each request, of the samples that are shown. */
export function sidesOfRequests(shown: Profile, threads: Uint8Array, of: SlowAndUsual): Sides {
  const side = sideOfRequest(of);
  const { busy } = wholes(shown, threads, side);
  return {
    of: 'requests',
    names: ['typical', 'slow'],
    base: baseOf('request', of.usual, of.slow, ...busy),
    slow: of,
    side,
  };
}

/** Two ranges of the time that do not overlap: the second is compared with the first. */
export interface Ranges {
  a: Span;
  b: Span;
}

/** The ranges that are compared; null: one is not chosen, or they overlap. */
export function rangesOf(against: Span | null, during: Span | null): Ranges | null {
  if (!against || !during) return null;
  const apart = against.to <= during.from || during.to <= against.from;
  return apart ? { a: against, b: during } : null;
}

/** The samples of both ranges, where what lasts longer counts with its part and begins inside. */
export function ofRanges(of: (during: Span) => Profile, { a, b }: Ranges): Profile {
  const [first, second] = [of(a), of(b)];
  const sizes = [first.samples.node.length, second.samples.node.length] as const;
  const samples = noSamples(sizes[0] + sizes[1]);
  for (const column of Object.keys(samples) as (keyof Samples)[]) {
    samples[column].set(first.samples[column]);
    samples[column].set(second.samples[column], sizes[0]);
  }
  for (let i = 0; i < samples.time.length; i++) {
    const { from } = i < sizes[0] ? a : b;
    samples.time[i] = Math.max(samples.time[i]!, from);
  }
  return { ...first, samples };
}

/** One range against another, for each second. */
export function sidesOfRanges(shown: Profile, threads: Uint8Array, { a, b }: Ranges): Sides {
  const isIn = (time: number, { from, to }: Span) => time >= from && time <= to;
  const side = ({ time }: Samples, i: number) =>
    isIn(time[i]!, a) ? 1 : isIn(time[i]!, b) ? 2 : 0;
  const { busy } = wholes(shown, threads, side);
  const seconds = ({ from, to }: Span) => (to - from) / 1e9;
  return {
    of: 'ranges',
    names: ['A', 'B'],
    base: baseOf('second', seconds(a), seconds(b), ...busy),
    slow: null,
    side,
  };
}

/** Two recordings; null if one has nothing of what both are to be brought to. */
export function sidesOfRecordings(
  shown: Profile,
  threads: Uint8Array,
  per: Per,
  endpoint: string | null,
): Sides | null {
  const { compare } = shown.header;
  if (!compare) return null;
  // The threads of the first recording come before those of the second.
  const side = (samples: Samples, i: number) => (samples.thread[i]! < compare.threadsOfA ? 1 : 2);
  const { all, busy } = wholes(shown, threads, side);
  const number = endpointNumber(shown.header, endpoint);
  const amount = (at: 0 | 1): number => {
    const of = compare.sides[at];
    if (per === 'second') return of.durationNs / 1e9;
    if (per === 'sample') return all[at].sum;
    return number < 0 ? of.requests : (of.requestsOf[number - 1] ?? 0);
  };
  if (!(amount(0) > 0 && amount(1) > 0)) return null;
  return {
    of: 'recordings',
    names: ['A', 'B'],
    base: baseOf(per, amount(0), amount(1), ...busy, compare.isOneUnit),
    slow: null,
    side,
  };
}

/**
 * Sums of each side, and the parts that were not idle. Idle threads have derived looks of almost no
 * weight each, so the error of a row that a side lacks comes from the other rows, with or without
 * idle time.
 */
function wholes(
  { samples, header }: Profile,
  threads: Uint8Array,
  side: (samples: Samples, i: number) => 0 | 1 | 2,
): { all: [Sum, Sum]; busy: [Sum, Sum] } {
  const none = (): Sum => ({ sum: 0, squares: 0, samples: 0 });
  const all: [Sum, Sum] = [none(), none()];
  const busy: [Sum, Sum] = [none(), none()];
  const idle = idleNumber(header);
  const add = (sum: Sum, i: number) => {
    sum.sum += samples.weight[i]!;
    sum.squares += samples.weight[i]! ** 2 / samples.choices[i]!;
    sum.samples += samples.count[i]!;
  };
  for (let i = 0; i < samples.node.length; i++) {
    const at = threads[samples.thread[i]!] ? side(samples, i) : 0;
    if (at === 0) continue;
    add(all[at - 1]!, i);
    if (samples.wait[i] !== idle) add(busy[at - 1]!, i);
  }
  const known = (at: 0 | 1) => (busy[at].sum > 0 ? busy[at] : all[at]);
  return { all, busy: [known(0), known(1)] };
}
