// Which samples a view is made of, and threads grouped into pools for choosing.
import type { Profile } from '../data/profile';
import { poolOf, threadName } from './keys';

/** All threads, one, some, or a pool of threads whose names differ only in numbers. */
export type ThreadChoice =
  | { kind: 'all' }
  | { kind: 'one'; thread: number }
  | { kind: 'some'; threads: readonly number[] }
  | { kind: 'pool'; pool: string };

export const ALL_THREADS: ThreadChoice = { kind: 'all' };

export { poolOf };

/** For every thread 1 if it is chosen, else 0. */
export function chosenThreads(profile: Profile, choice: ThreadChoice): Uint8Array {
  const chosen = new Uint8Array(profile.threads.name.length);
  if (choice.kind === 'all') chosen.fill(1);
  else if (choice.kind === 'one') {
    if (choice.thread < chosen.length) chosen[choice.thread] = 1;
  } else if (choice.kind === 'some') {
    for (const thread of choice.threads) if (thread < chosen.length) chosen[thread] = 1;
  } else {
    for (let thread = 0; thread < chosen.length; thread++) {
      const name = profile.names.text(profile.threads.name[thread]!);
      if (poolOf(name) === choice.pool) chosen[thread] = 1;
    }
  }
  return chosen;
}

/** The threads of a role; all if none has samples. */
export function threadsOfRole({ header, samples }: Profile, role: string): ThreadChoice {
  const number = header.roles.indexOf(role);
  const threads = new Set<number>();
  for (let i = 0; i < samples.role.length; i++) {
    if (samples.role[i] === number) threads.add(samples.thread[i]!);
  }
  const [only, ...others] = [...threads].sort((a, b) => a - b);
  if (only === undefined) return ALL_THREADS;
  if (others.length === 0) return { kind: 'one', thread: only };
  return { kind: 'some', threads: [only, ...others] };
}

/** The choice with a thread more or less. */
export function withThread(choice: ThreadChoice, thread: number, isIn: boolean): ThreadChoice {
  const known =
    choice.kind === 'some' ? choice.threads : choice.kind === 'one' ? [choice.thread] : [];
  const others = known.filter((other) => other !== thread);
  const threads = (isIn ? [...others, thread] : others).sort((a, b) => a - b);
  if (threads.length === 0) return ALL_THREADS;
  return threads.length === 1 ? { kind: 'one', thread: threads[0]! } : { kind: 'some', threads };
}

export interface ThreadRow {
  thread: number;
  name: string;
  weight: number;
  samples: number;
}

export interface PoolRow {
  pool: string;
  threads: number;
  weight: number;
}

/** Threads with samples, heaviest first, and the pools of more than one of them. */
export function threadRows(profile: Profile): { threads: ThreadRow[]; pools: PoolRow[] } {
  const weights = new Float64Array(profile.threads.name.length);
  const samples = new Uint32Array(weights.length);
  const { thread, weight, count } = profile.samples;
  for (let i = 0; i < thread.length; i++) {
    weights[thread[i]!]! += weight[i]!;
    samples[thread[i]!]! += count[i]!;
  }
  const threads: ThreadRow[] = [];
  const pools = new Map<string, PoolRow>();
  for (let i = 0; i < weights.length; i++) {
    if (samples[i] === 0) continue;
    const sum = weights[i]!;
    threads.push({ thread: i, name: threadName(profile, i), weight: sum, samples: samples[i]! });
    const pool = poolOf(profile.names.text(profile.threads.name[i]!));
    const row = pools.get(pool) ?? { pool, threads: 0, weight: 0 };
    pools.set(pool, { pool, threads: row.threads + 1, weight: row.weight + sum });
  }
  const heaviest = (a: { weight: number }, b: { weight: number }) => b.weight - a.weight;
  return {
    threads: threads.sort(heaviest),
    pools: [...pools.values()].filter((pool) => pool.threads > 1).sort(heaviest),
  };
}
