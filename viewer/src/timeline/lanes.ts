// Lanes of the timeline: the runtime's on top, then threads, grouped by pool. Pure. Their content
// is in tracks.ts, their appearance in draw.ts.
import { idleNumber } from '../data/measure';
import { platformOf } from '../data/platform';
import type { Profile } from '../data/profile';
import { eachWall, type WallFilter } from '../data/wall';
import { poolOf } from '../tree/select';
import { type Runtime, runtimeLanes } from './runtime';
import type { Tracks } from './tracks';

export type Lane =
  | { kind: 'runtime'; what: Runtime; name: string }
  | { kind: 'pool'; name: string; key: string; threads: number[]; open: boolean }
  | { kind: 'thread'; name: string; thread: number; inPool: boolean };

export interface Lanes {
  lanes: Lane[];
  /** Threads with something to show that have no lane. */
  leftOut: number;
}

/** Maximum number of virtual threads with lanes; the most active ones get one. */
export const VIRTUAL_MAX = 200;
/** The same for other threads. */
export const THREADS_MAX = 1000;
/** A pool is folded if at most this part of its time was not idle. */
const IDLE_SHARE = 0.05;
/** Pools of more threads are folded whatever they do. */
const OPEN_MAX = 24;
/** Threads that every JVM or Mono has, and that do nothing of the program. */
const OF_EVERY_JVM: ReadonlySet<string> = new Set([
  'Attach Listener',
  'Common-Cleaner',
  'Finalizer',
  'Monitor Deflation Thread',
  'Notification Thread',
  'Profiler Sampler',
  'Reference Handler',
  'Service Thread',
  'Signal Dispatcher',
]);

export interface Pool {
  key: string;
  name: string;
  threads: number[];
  /** Time of its threads that was not idle. */
  busy: number;
  /** Part of it for requests. */
  forRequests: number;
  isFolded: boolean;
  isVirtual: boolean;
}

/** The pools that the chosen threads belong to, and how many threads have none. */
export function poolsOf(
  profile: Profile,
  tracks: Tracks,
  filter: WallFilter,
): { pools: Pool[]; leftOut: number } {
  const { names, threads } = profile;
  const idle = idleNumber(profile.header);
  const everything = { ...filter, idle: true, during: null, endpoint: null, request: 0 };
  const [all, atIdle, forRequests, cpu] = [0, 0, 0, 0].map(
    () => new Float64Array(threads.name.length),
  ) as [Float64Array, Float64Array, Float64Array, Float64Array];
  eachWall(profile, everything, ({ of, i, cause, weight }) => {
    const thread = of.thread[i]!;
    all[thread]! += weight;
    if (cause === idle) atIdle[thread]! += weight;
    if (of.endpoint[i] !== 0) forRequests[thread]! += weight;
  });
  const { samples } = profile;
  // Compilers are Java threads to the JVM, not to a reader.
  const ofJvm = Uint8Array.from(threads.javaTid, (tid, thread) =>
    tid > 0 && !OF_EVERY_JVM.has(names.text(threads.name[thread]!)) ? 0 : 1,
  );
  for (let i = 0; i < samples.node.length; i++) {
    cpu[samples.thread[i]!]! += samples.weight[i]!;
    if (samples.role[i] !== 0) ofJvm[samples.thread[i]!] = 1;
  }
  const busyOf = (thread: number) =>
    all[thread]! > 0 ? all[thread]! - atIdle[thread]! : cpu[thread]!;
  const platform = platformOf(profile.header.info.jvmName).name;
  const ownThreads = `threads of ${platform === 'JVM' ? 'the JVM' : platform}`;
  const { chosen, leftOut } = chosenThreads(profile, tracks, filter, busyOf);
  const pools = new Map<string, Pool>();
  for (const thread of chosen) {
    const isVirtual = threads.virtual[thread] === 1;
    const isJava = ofJvm[thread] === 0;
    const name = poolOf(names.text(threads.name[thread]!));
    const group = isVirtual ? 'virtual threads' : isJava ? name : ownThreads;
    const key = isVirtual ? 'virtual' : isJava ? `java:${name}` : 'jvm';
    let pool = pools.get(key);
    if (!pool) {
      pool = { key, name: group, threads: [], busy: 0, forRequests: 0, isFolded: false, isVirtual };
      pools.set(key, pool);
    }
    pool.threads.push(thread);
    pool.busy += busyOf(thread);
    pool.forRequests += forRequests[thread]!;
  }
  for (const pool of pools.values()) {
    pool.threads.sort((a, b) => busyOf(b) - busyOf(a) || a - b);
    const whole = pool.threads.reduce((sum, thread) => sum + all[thread]!, 0);
    const isIdle = whole > 0 && pool.busy <= IDLE_SHARE * whole;
    pool.isFolded = isIdle || pool.key === 'jvm' || pool.threads.length > OPEN_MAX;
  }
  const order = [...pools.values()].sort(
    (a, b) => rank(a) - rank(b) || b.forRequests - a.forRequests || b.busy - a.busy,
  );
  return { pools: order, leftOut };
}

/** Threads of the JVM come last, idle pools before them. */
function rank(pool: Pool): number {
  if (pool.key === 'jvm') return 2;
  return pool.isFolded && pool.threads.length <= OPEN_MAX ? 1 : 0;
}

function chosenThreads(
  profile: Profile,
  tracks: Tracks,
  filter: WallFilter,
  busyOf: (thread: number) => number,
): { chosen: number[]; leftOut: number } {
  const { threads } = profile;
  const [virtual, others]: [number[], number[]] = [[], []];
  for (let thread = 0; thread < threads.name.length; thread++) {
    if (filter.threads[thread] !== 1 || !tracks.has(thread)) continue;
    if (filter.request > 0 && !tracks.worksFor(thread, filter.request)) continue;
    (threads.virtual[thread] === 1 ? virtual : others).push(thread);
  }
  const busiest = (list: number[], most: number) =>
    list.sort((a, b) => busyOf(b) - busyOf(a) || a - b).slice(0, most);
  const chosen = [...busiest(others, THREADS_MAX), ...busiest(virtual, VIRTUAL_MAX)];
  return { chosen, leftOut: virtual.length + others.length - chosen.length };
}

/** The lanes; `turned` are pools that the user folded or unfolded against the default. */
export function lanesOf(
  profile: Profile,
  pools: readonly Pool[],
  turned: ReadonlySet<string>,
): Lane[] {
  const lanes: Lane[] = [];
  const { names, threads } = profile;
  for (const lane of runtimeLanes(profile)) lanes.push({ kind: 'runtime', ...lane });
  const laneOf = (thread: number, inPool: boolean): Lane => ({
    kind: 'thread',
    name: names.text(threads.name[thread]!) || '(no name)',
    thread,
    inPool,
  });
  for (const pool of pools) {
    if (pool.threads.length === 1 && pool.key !== 'jvm') {
      lanes.push(laneOf(pool.threads[0]!, false));
      continue;
    }
    const open = pool.isFolded === turned.has(pool.key);
    const { key, name } = pool;
    lanes.push({ kind: 'pool', name, key, threads: pool.threads, open });
    if (open) for (const thread of pool.threads) lanes.push(laneOf(thread, true));
  }
  return lanes;
}

/** The place of a thread's lane, or of the pool that it is folded into; -1 without a lane. */
export function laneOfThread(lanes: readonly Lane[], thread: number): number {
  const own = lanes.findIndex((lane) => lane.kind === 'thread' && lane.thread === thread);
  if (own >= 0) return own;
  return lanes.findIndex((lane) => lane.kind === 'pool' && lane.threads.includes(thread));
}
