// Time in locks: by the lock's class, with holders, and over the time of the recording.
import type { Column } from './columns';
import type { Profile, Samples } from './profile';
import { emptyStrip, spread, type Strip, type WallFilter, wholeSpan } from './wall';
import { partIn, shareIn } from './window';

/** What a page's header says of waits for monitors. */
export interface Locked {
  /** Waits of at least this duration are all recorded, shorter ones by chance. */
  intervalNs: number;
  /** The requested threshold if the rate limit raised it, else 0. */
  askedNs?: number;
  /** All waits, recorded or not, and how long they lasted. */
  waits: number;
  blockedNs: number;
  /** Waits that could not be kept, and what they stood for. */
  lost: number;
  lostNs: number;
}

/** Waits for locks; weights are nanoseconds. */
export interface LockTable {
  samples: Samples;
  /** A name's number. */
  class: Uint32Array;
  /** Number of waits that each one stands for; 0 if it comes from wall-clock samples. */
  waits: Float64Array;
  longest: Float64Array;
  /** From the beginning to the end: the weight lies over this time. */
  duration: Float64Array;
  /** The lock's holder, as a thread's number plus 1; 0: unknown. */
  owner: Uint32Array;
  /** 1: known from looks, not from an event. */
  look: Uint8Array;
}

/** The time in locks of one class. */
export interface LockRow {
  /** A name's number. */
  name: number;
  ns: number;
  /** 0: known from looks alone. */
  waits: number;
  longest: number;
  samples: number;
  /** One standard error of the time, from the samples alone. */
  error: number;
  /** The thread that others waited for longest, and for how long; -1: not known. */
  owner: number;
  ownerNs: number;
}

export function readLocks(column: (name: string) => Column): LockTable {
  const node = column('lock.node').u32();
  return {
    samples: {
      time: column('lock.time').f64(),
      thread: column('lock.thread').u32(),
      node,
      weight: column('lock.ns').f64(),
      count: column('lock.count').u32(),
      choices: column('lock.choices').u32(),
      cause: new Uint32Array(node.length),
      role: new Uint8Array(node.length),
      endpoint: column('lock.endpoint').u32(),
      request: column('lock.request').u32(),
      wait: new Uint8Array(node.length),
    },
    class: column('lock.class').u32(),
    waits: column('lock.waits').f64(),
    longest: column('lock.longest').f64(),
    duration: column('lock.duration').f64(),
    owner: column('lock.owner').u32(),
    look: column('lock.look').u8(),
  };
}

/** What of an entry counts. */
interface Counted {
  ns: number;
  waits: number;
  samples: number;
}

/** Shows every entry that a filter takes, with what of it counts: the same object every time. */
function each(
  profile: Profile,
  filter: WallFilter,
  see: (i: number, counted: Counted) => void,
): void {
  const { locks, header } = profile;
  if (!locks) return;
  const { samples, waits } = locks;
  const { threads, endpoint, during, request } = filter;
  const counted = { ns: 0, waits: 0, samples: 0 };
  const number = endpoint === null ? -1 : header.endpoints.indexOf(endpoint) + 1;
  for (let i = 0; i < samples.node.length; i++) {
    if (threads[samples.thread[i]!] !== 1) continue;
    if (number >= 0 && samples.endpoint[i] !== number) continue;
    if (request !== 0 && samples.request[i] !== request) continue;
    const [time, duration] = [samples.time[i]!, locks.duration[i]!];
    if (shareIn(time, duration, during) <= 0) continue;
    counted.ns = partIn(samples.weight[i]!, time, duration, during);
    counted.waits = partIn(waits[i]!, time, duration, during);
    counted.samples = partIn(Math.max(1, samples.count[i]!), time, duration, during);
    see(i, counted);
  }
}

/** By class, the most time first. */
export function lockRows(profile: Profile, filter: WallFilter): LockRow[] {
  const rows = new Map<number, LockRow>();
  const squares = new Map<number, number>();
  const owners = new Map<number, Map<number, number>>();
  each(profile, filter, (i, counted) => {
    const { samples, class: names, longest, owner } = profile.locks!;
    const name = names[i]!;
    const row = rows.get(name) ?? {
      ...{ name, ns: 0, waits: 0, longest: 0, samples: 0, error: 0 },
      ...{ owner: -1, ownerNs: 0 },
    };
    const { ns } = counted;
    row.ns += ns;
    row.waits += counted.waits;
    row.longest = Math.max(row.longest, longest[i]!);
    row.samples += counted.samples;
    rows.set(name, row);
    const choices = Math.max(1, samples.choices[i]!);
    squares.set(name, (squares.get(name) ?? 0) + (ns * ns) / choices);
    if (owner[i] === 0) return;
    const of = owners.get(name) ?? new Map<number, number>();
    of.set(owner[i]! - 1, (of.get(owner[i]! - 1) ?? 0) + ns);
    owners.set(name, of);
  });
  for (const row of rows.values()) {
    row.error = Math.sqrt(squares.get(row.name) ?? 0);
    for (const [owner, ns] of owners.get(row.name) ?? []) {
      if (ns > row.ownerNs) [row.owner, row.ownerNs] = [owner, ns];
    }
  }
  return [...rows.values()].sort((a, b) => b.ns - a.ns || a.name - b.name);
}

/** Waits of one thread for monitors: how many, how long in all, and the longest. */
export function monitorWaits(
  profile: Profile,
  filter: WallFilter,
  thread: number,
): { waits: number; ns: number; longest: number } {
  const all = { waits: 0, ns: 0, longest: 0 };
  each(profile, filter, (i, counted) => {
    const { samples, longest, look } = profile.locks!;
    if (samples.thread[i] !== thread || look[i] === 1) return;
    all.waits += counted.waits;
    all.ns += counted.ns;
    all.longest = Math.max(all.longest, longest[i]!);
  });
  return all;
}

/** Time that threads waited for locks, over all of the recording, whatever the filter's part. */
export function lockStrip(profile: Profile, filter: WallFilter, bins: number): Strip {
  const strip = emptyStrip(wholeSpan(profile), 1, bins);
  each(profile, { ...filter, during: null }, (i) => {
    const { samples, duration } = profile.locks!;
    const time = samples.time[i]!;
    spread(strip, 0, time, time + duration[i]!, samples.weight[i]!);
  });
  return strip;
}
