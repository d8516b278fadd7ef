// What the page measures: CPU time, or wall time by cause; of all endpoints or of one; of all the
// time, of a part of it, or of one request. The choice gives a profile of the same tables with
// other samples, from which everything else is made.
import type { Header, Profile, Samples, Span } from './profile';
import { partIn, shareIn } from './window';

/**
 * CPU time, all wall time, all waits, or waits for one cause; the stacks of lock holders by the
 * time of the waits, or of late threads by the delay. Otherwise allocated bytes, live bytes, or the
 * time in locks, of monitors by events.
 */
export type Time =
  'cpu' | 'wall' | 'off' | 'owners' | 'late' | 'alloc' | 'live' | 'locks' | { cause: string };

export interface Measure {
  time: Time;
  /** Null: all, and what was done for none. */
  endpoint: string | null;
}

export const CPU: Measure = { time: 'cpu', endpoint: null };

/** The selected part of a measure. */
export interface Part {
  /** Whether time in which threads had nothing to do counts, too. */
  idle: boolean;
  /** Null: all of the recording. */
  during: Span | null;
  /** A request's number; 0: all, and what was done for none. */
  request: number;
}

export const WHOLE: Part = { idle: false, during: null, request: 0 };

/** The cause of looks at threads that had nothing to do. */
export const IDLE = 'idle-pool';

/** The number that such looks have; -1 if there are none. */
export function idleNumber(header: Header): number {
  return header.waits.indexOf(IDLE) + 1 || -1;
}

/** The choice if the profile has it, else the nearest that it has. */
export function possible(header: Header, measure: Measure): Measure {
  const { time, endpoint } = measure;
  const hasCause = typeof time !== 'object' || header.waits.includes(time.cause);
  // Two recordings are compared by time.
  const objects = time === 'alloc' ? header.allocated : header.alive;
  const hasObjects = !!objects && !header.compare;
  const hasLocks = !!header.locked && !header.compare;
  const has =
    time === 'alloc' || time === 'live'
      ? hasObjects
      : time === 'locks'
        ? hasLocks
        : time === 'late' || (header.wall !== null && hasCause);
  return {
    time: has ? time : first(header),
    endpoint: endpoint !== null && header.endpoints.includes(endpoint) ? endpoint : null,
  };
}

/** What is shown first: samples, or what a recording without any measures. */
function first(header: Header): Time {
  if (header.samples > 0 || header.wall !== null || header.compare) return 'cpu';
  if (header.allocated) return 'alloc';
  if (header.alive) return 'live';
  return header.locked ? 'locks' : 'cpu';
}

/** The number of an endpoint; -1: all. */
export function endpointNumber(header: Header, endpoint: string | null): number {
  return endpoint === null ? -1 : header.endpoints.indexOf(endpoint) + 1;
}

/** The profile of what is measured. */
export function measured(profile: Profile, measure: Measure, part: Part = WHOLE): Profile {
  const { time, endpoint } = possible(profile.header, measure);
  if (time === 'cpu' && endpoint === null && part.during === null && part.request === 0) {
    return profile;
  }
  if (time === 'late') {
    return { ...profile, header: inTime(profile.header), samples: lateSamples(profile, part) };
  }
  const { wall, allocations } = profile;
  const number = endpointNumber(profile.header, endpoint);
  const wanted = (of: Samples) => (i: number) =>
    (number < 0 || of.endpoint[i] === number) &&
    (part.request === 0 || of.request[i] === part.request);
  const pieces: Piece[] = [];
  if (time === 'alloc' && allocations) {
    const of = allocations.samples;
    pieces.push(piece(of, wanted(of), NO_TIME, part.during));
    const header = { ...profile.header, unit: 'bytes' as const };
    return { ...profile, header, samples: together(pieces) };
  }
  if (time === 'live' && profile.alive) {
    const { samples: of, collections } = profile.alive;
    const isWanted = wanted(of);
    // Objects not yet seen by a GC do not count.
    const survived = (i: number) => collections[i]! > 0 && isWanted(i);
    pieces.push(piece(of, survived, NO_TIME, part.during));
    const header = { ...profile.header, unit: 'bytes' as const };
    return { ...profile, header, samples: together(pieces) };
  }
  if (time === 'locks' && profile.locks) {
    const { samples: of, duration } = profile.locks;
    pieces.push(piece(of, wanted(of), duration, part.during));
    return { ...profile, header: inTime(profile.header), samples: together(pieces) };
  }
  const { samples } = profile;
  const isSample = wanted(samples);
  if (time === 'cpu') pieces.push(piece(samples, isSample, NO_TIME, part.during));
  if (time === 'wall' && wall) {
    const ran = (i: number) => wall.running[i] === 1 && isSample(i);
    const scale = profile.header.wallScale ?? 1;
    pieces.push({ ...piece(samples, ran, NO_TIME, part.during), scale });
  }
  if (time !== 'cpu' && wall) {
    const { looks } = wall;
    const isLook = wanted(looks);
    const cause = typeof time === 'object' ? profile.header.waits.indexOf(time.cause) + 1 : 0;
    // Idle time that is asked for by its name is shown.
    const idle = part.idle || cause !== 0 ? -1 : idleNumber(profile.header);
    const isWanted =
      time === 'owners'
        ? (i: number) => wall.ownerNode[i] !== 0 && isLook(i)
        : (i: number) =>
            (cause === 0 || looks.wait[i] === cause) && looks.wait[i] !== idle && isLook(i);
    pieces.push(piece(looks, isWanted, wall.duration, part.during));
  }
  const all = together(pieces);
  if (time === 'owners' && wall) toOwners(all, pieces, wall);
  if (time === 'cpu') return { ...profile, samples: all };
  return { ...profile, header: inTime(profile.header), samples: all };
}

/** The header of a measure of time: samples may only be counted, waits never are. */
function inTime(header: Header): Header {
  return header.unit === 'ns' ? header : { ...header, unit: 'ns' };
}

/** Durations of events that have none. */
const NO_TIME = new Float64Array(0);

/** Some entries of a table, how long each lasted, and which part of the time counts. */
interface Piece {
  of: Samples;
  chosen: Uint32Array;
  duration: Float64Array;
  during: Span | null;
  /** The factor of the weights; missing: 1. */
  scale?: number;
}

function piece(
  of: Samples,
  isWanted: (i: number) => boolean,
  duration: Float64Array,
  during: Span | null,
): Piece {
  const chosen = new Uint32Array(of.node.length);
  let n = 0;
  for (let i = 0; i < of.node.length; i++) {
    if (isWanted(i) && shareIn(of.time[i]!, duration[i] ?? 0, during) > 0) chosen[n++] = i;
  }
  return { of, chosen: chosen.subarray(0, n), duration, during };
}

export function noSamples(size: number): Samples {
  return {
    time: new Float64Array(size),
    thread: new Uint32Array(size),
    node: new Uint32Array(size),
    weight: new Float64Array(size),
    count: new Uint32Array(size),
    choices: new Uint32Array(size),
    cause: new Uint32Array(size),
    role: new Uint8Array(size),
    endpoint: new Uint32Array(size),
    request: new Uint32Array(size),
    wait: new Uint8Array(size),
  };
}

function together(pieces: Piece[]): Samples {
  const size = pieces.reduce((sum, { chosen }) => sum + chosen.length, 0);
  const all = noSamples(size);
  const columns = Object.keys(all) as (keyof Samples)[];
  let start = 0;
  for (const { of, chosen, duration, during, scale } of pieces) {
    for (const column of columns) {
      const [to, from] = [all[column], of[column]];
      for (let at = 0; at < chosen.length; at++) to[start + at] = from[chosen[at]!]!;
    }
    if (scale !== undefined && scale !== 1) {
      for (let at = 0; at < chosen.length; at++) all.weight[start + at]! *= scale;
    }
    if (during) {
      for (let at = 0; at < chosen.length; at++) {
        toPart(all, start + at, duration[chosen[at]!] ?? 0, during);
      }
    }
    start += chosen.length;
  }
  return all;
}

/** Leaves an entry with what it has in a part of the time. */
function toPart(all: Samples, at: number, duration: number, during: Span): void {
  if (duration <= 0) return;
  const time = all.time[at]!;
  all.weight[at] = partIn(all.weight[at]!, time, duration, during);
  all.count[at] = partIn(all.count[at]!, time, duration, during);
  // At least as certain as one choice, because it is a divisor.
  all.choices[at] = Math.max(1, partIn(all.choices[at]!, time, duration, during));
}

/** Replaces waiting threads and their stacks by the holders and theirs. */
function toOwners(all: Samples, pieces: Piece[], wall: NonNullable<Profile['wall']>): void {
  let at = 0;
  for (const { chosen } of pieces) {
    for (const i of chosen) {
      all.thread[at] = wall.owner[i]! - 1;
      all.node[at] = wall.ownerNode[i]! - 1;
      at++;
    }
  }
}

/** Threads that were late for safepoints, weighed by how long they held the others up. */
function lateSamples({ late }: Profile, { during }: Part): Samples {
  const chosen: number[] = [];
  const held = (i: number) => partIn(late.held[i]!, late.time[i]!, late.duration[i]!, during);
  for (let i = 0; i < late.time.length; i++) {
    if (late.node[i] !== 0 && held(i) > 0) chosen.push(i);
  }
  const all = noSamples(chosen.length);
  chosen.forEach((i, at) => {
    all.time[at] = late.time[i]!;
    all.thread[at] = late.thread[i]!;
    all.node[at] = late.node[i]! - 1;
    all.weight[at] = held(i);
    all.count[at] = partIn(1, late.time[i]!, late.duration[i]!, during);
    all.choices[at] = 1;
  });
  return all;
}

/** The choice as one text, for lists and addresses. */
export function textOf(time: Time): string {
  return typeof time === 'object' ? `waits:${time.cause}` : time;
}

const NAMED: readonly Time[] = ['wall', 'off', 'owners', 'late', 'alloc', 'live', 'locks'];

/** The choice that a text stands for; CPU time if it stands for none. */
export function timeOf(text: string): Time {
  if (text.startsWith('waits:')) return { cause: text.slice('waits:'.length) };
  return NAMED.find((time) => time === text) ?? 'cpu';
}
