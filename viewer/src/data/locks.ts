// Locks that threads waited for, their holders, and the stacks of both.
import { poolOf } from '../tree/select';
import { duration, percent } from './format';
import { endpointNumber } from './measure';
import { OF_PLATFORM } from './platform';
import type { Profile, Span } from './profile';
import { methodOf, takerOf } from './stacks';
import type { WallFilter } from './wall';
import { partIn } from './window';

/** Causes that have an owner. */
export const LOCKING: readonly string[] = ['monitor', 'lock'];

/** The name of a lock that is not known. */
export const UNKNOWN = 'unknown';

export interface Waiting {
  /** What was waited for, as a person reads it. */
  name: string;
  cause: string;
  weight: number;
  looks: number;
  waiters: Set<number>;
  /** Time by owner; -1: not known. */
  owners: Map<number, number>;
  /** Time by node: where the waiting threads were, and where the owners were. */
  waiterNodes: Map<number, number>;
  ownerNodes: Map<number, number>;
}

/** One thread group waited for another. */
export interface Edge {
  waiter: string;
  /** Empty: unknown. */
  owner: string;
  weight: number;
  looks: number;
}

export interface Locks {
  locks: Waiting[];
  edges: Edge[];
  weight: number;
}

/** Name of a lock without its address, such as that of `java.lang.Object@7f00`. */
export function kindOf(detail: string): string {
  return detail.replace(/@[0-9a-f]+$/i, '');
}

/** The sample of a thread at a time: a look, or, below 0, -1 - a sample; null: none. */
export type SeenAt = (thread: number, time: number) => number | null;

/** Whether a sample shows its thread waiting for the lock of a look: so it does not hold it. */
export function isQueued({ wall, header }: Profile, look: number, seen: number): boolean {
  if (!wall || seen < 0) return false;
  const { wait } = wall.looks;
  const isLock = LOCKING.includes(header.waits[wait[seen]! - 1] ?? '');
  return isLock && wait[seen] === wait[look] && wall.detail[seen] === wall.detail[look];
}

/**
 * Whether the holder of a lock can be at a node while a thread at another one waits for it: in the
 * method that takes the lock, or in one of the lock's class.
 */
export function isInside(profile: Profile, node: number, waiter: number, lock: string): boolean {
  const { nodes, frames, methods, names } = profile;
  const taker = methodOf(profile, takerOf(profile, waiter));
  const ofClass = OF_PLATFORM.test(lock) ? '' : kindOf(lock);
  for (let at = node; at !== 0; at = nodes.parent[at]!) {
    const method = frames.method[nodes.frame[at]!]!;
    if (method === taker || names.text(methods.class[method]!) === ofClass) return true;
  }
  return false;
}

/** Where a sample shows the owner of a look's lock, as a node; 0: not while it held the lock. */
function heldAt(profile: Profile, look: number, seen: number | null): number {
  const { wall, samples } = profile;
  if (!wall || seen === null || isQueued(profile, look, seen)) return 0;
  const node = seen >= 0 ? wall.looks.node[seen]! : samples.node[-1 - seen]!;
  const lock = lockName(profile, look, false);
  return isInside(profile, node, wall.looks.node[look]!, lock) ? node : 0;
}

/**
 * All waiting for locks, the longest first. Owners that did not wait themselves are where `seenAt`
 * has a sample of them inside the lock next to that time.
 */
export function locksOf(
  profile: Profile,
  filter: WallFilter,
  apart: boolean,
  seenAt?: SeenAt,
): Locks {
  const { wall, header, names, threads } = profile;
  const found = new Map<string, Waiting>();
  const edges = new Map<string, Edge>();
  let all = 0;
  if (!wall) return { locks: [], edges: [], weight: 0 };
  const pool = (thread: number) => poolOf(names.text(threads.name[thread] ?? 0));
  for (const [i, weight, count] of lockLooks(profile, filter)) {
    const { looks } = wall;
    all += weight;
    const name = lockName(profile, i, apart);
    const cause = header.waits[wall.looks.wait[i]! - 1]!;
    const lock = lockOf(found, name, cause);
    const owner = wall.owner[i]! - 1;
    lock.weight += weight;
    lock.looks += count;
    lock.waiters.add(looks.thread[i]!);
    add(lock.owners, owner, weight);
    add(lock.waiterNodes, looks.node[i]!, weight);
    let ownerNode = wall.ownerNode[i]! - 1;
    if (ownerNode < 0 && owner >= 0 && seenAt) {
      const seen = seenAt(owner, looks.time[i]! + wall.duration[i]! / 2);
      ownerNode = heldAt(profile, i, seen);
    }
    if (ownerNode > 0) add(lock.ownerNodes, ownerNode, weight);
    const [from, to] = [pool(looks.thread[i]!), owner < 0 ? '' : pool(owner)];
    const key = JSON.stringify([from, to]);
    const edge = edges.get(key) ?? { waiter: from, owner: to, weight: 0, looks: 0 };
    edge.weight += weight;
    edge.looks += count;
    edges.set(key, edge);
  }
  const heaviest = (a: { weight: number }, b: { weight: number }) => b.weight - a.weight;
  return {
    locks: [...found.values()].sort((a, b) => known(b) - known(a) || heaviest(a, b)),
    edges: [...edges.values()].sort(heaviest),
    weight: all,
  };
}

/** A lock in two ranges of the time: the waiting in each second of them, in nanoseconds. */
export interface ComparedLock {
  /** In the second range, or in the first if only that has it. */
  lock: Waiting;
  a: number;
  b: number;
}

/** The locks of two ranges of the time, those with the largest change first. */
export function comparedLocks(
  profile: Profile,
  filter: WallFilter,
  ranges: { a: Span; b: Span },
  apart: boolean,
  seenAt?: SeenAt,
): ComparedLock[] {
  const key = ({ cause, name }: Waiting) => `${cause} ${name}`;
  const of = (during: Span) => {
    const { locks } = locksOf(profile, { ...filter, during }, apart, seenAt);
    return new Map(locks.map((lock) => [key(lock), lock]));
  };
  const rate = (lock: Waiting | undefined, { from, to }: Span) =>
    ((lock?.weight ?? 0) * 1e9) / (to - from);
  const [first, second] = [of(ranges.a), of(ranges.b)];
  const both = [...new Map([...first, ...second]).values()];
  const rows = both.map((lock) => ({
    lock,
    a: rate(first.get(key(lock)), ranges.a),
    b: rate(second.get(key(lock)), ranges.b),
  }));
  const change = (row: ComparedLock) => Math.abs(row.b - row.a);
  return rows.sort((x, y) => known(y.lock) - known(x.lock) || change(y) - change(x));
}

/** A lock without a name is a bad first choice. */
function known(lock: Waiting): number {
  return Number(!lock.name.startsWith(UNKNOWN));
}

/** The looks at threads that waited for locks: each with the time and the looks that count. */
export function* lockLooks(
  profile: Profile,
  filter: WallFilter,
): Generator<[number, number, number]> {
  const { wall, header } = profile;
  if (!wall) return;
  const numbers = new Set(LOCKING.map((cause) => header.waits.indexOf(cause) + 1));
  numbers.delete(0);
  const endpoint = endpointNumber(header, filter.endpoint);
  const { looks } = wall;
  for (let i = 0; i < looks.node.length; i++) {
    if (!numbers.has(looks.wait[i]!) || filter.threads[looks.thread[i]!] !== 1) continue;
    if (endpoint >= 0 && looks.endpoint[i] !== endpoint) continue;
    if (filter.request !== 0 && looks.request[i] !== filter.request) continue;
    const [time, duration] = [looks.time[i]!, wall.duration[i]!];
    const weight = partIn(looks.weight[i]!, time, duration, filter.during);
    if (weight > 0) yield [i, weight, partIn(looks.count[i]!, time, duration, filter.during)];
  }
}

/** Time that threads waited for locks, and the part of it with a stack of the holder. */
export interface Holders {
  known: number;
  all: number;
}

export function holdersOf(profile: Profile, filter: WallFilter): Holders {
  const holders = { known: 0, all: 0 };
  for (const [i, weight] of lockLooks(profile, filter)) {
    holders.all += weight;
    if (profile.wall?.ownerNode[i] !== 0) holders.known += weight;
  }
  return holders;
}

export function holdersWords({ known, all }: Holders): string {
  const share = percent(known / (all || 1));
  return `The graph of holders has ${duration(known)} of ${duration(all)} waited for locks (${share}).`;
}

/** What a look's thread waited for. */
export function lockName({ wall, names }: Profile, look: number, apart: boolean): string {
  const id = wall?.detail[look] ?? 0;
  const detail = id > 0 ? names.text(id - 1) : UNKNOWN;
  return apart ? detail : kindOf(detail);
}

function lockOf(found: Map<string, Waiting>, name: string, cause: string): Waiting {
  const key = `${cause} ${name}`;
  let lock = found.get(key);
  if (!lock) {
    lock = {
      name,
      cause,
      weight: 0,
      looks: 0,
      waiters: new Set(),
      owners: new Map(),
      waiterNodes: new Map(),
      ownerNodes: new Map(),
    };
    found.set(key, lock);
  }
  return lock;
}

function add(sums: Map<number, number>, key: number, weight: number): void {
  sums.set(key, (sums.get(key) ?? 0) + weight);
}

/** The greatest of some sums. */
export function greatest(sums: Map<number, number>, most: number): [number, number][] {
  return [...sums].sort((a, b) => b[1] - a[1]).slice(0, most);
}
