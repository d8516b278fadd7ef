// Chains of locks: threads that wait for a thread that also waits for a lock, and the activity of
// the last one. Pure.
import { poolOf } from '../tree/select';
import { isQueued, lockLooks, lockName, LOCKING, type SeenAt } from './locks';
import type { Profile } from './profile';
import { causesOf, type WallFilter } from './wall';

/** Waiting threads, each one waiting for the next. */
export interface Chain {
  /**
   * Thread groups: the waiter, the holder of its lock, the holder of that one's lock, and
   * so on.
   */
  groups: string[];
  /** What each of them but the last one waits for. */
  locks: string[];
  /** Activity of the last one, as a cause; empty if it has no sample at that time. */
  end: string;
  weight: number;
  looks: number;
}

/** Longer ones, and those that lead back to their beginning, are cut. */
const LINKS_MAX = 8;

/** All waiting for owners that waited for locks themselves, the longest first. */
export function chainsOf(profile: Profile, filter: WallFilter, seenAt: SeenAt): Chain[] {
  const { wall, names, threads } = profile;
  if (!wall) return [];
  const causes = causesOf(profile);
  const group = (thread: number) => poolOf(names.text(threads.name[thread] ?? 0));
  const found = new Map<string, Chain>();
  for (const [look, weight] of lockLooks(profile, filter)) {
    const time = wall.looks.time[look]! + wall.duration[look]! / 2;
    const passed = [wall.looks.thread[look]!];
    const locks: string[] = [];
    let [at, end]: [number, string] = [look, ''];
    while (passed.length < LINKS_MAX) {
      const owner = wall.owner[at]! - 1;
      if (owner < 0 || passed.includes(owner)) break;
      passed.push(owner);
      locks.push(lockName(profile, at, false));
      let seen = seenAt(owner, time);
      // A thread that waits for the same lock does not hold it: the sample is of another moment.
      if (seen !== null && isQueued(profile, at, seen)) seen = null;
      end = seen === null ? '' : causes[seen < 0 ? 0 : wall.looks.wait[seen]!]!;
      if (seen === null || !LOCKING.includes(end)) break;
      at = seen;
    }
    if (locks.length < 2) continue;
    const groups = passed.map(group);
    const key = JSON.stringify([groups, locks, end]);
    const chain = found.get(key) ?? { groups, locks, end, weight: 0, looks: 0 };
    chain.weight += weight;
    chain.looks += wall.looks.count[look]!;
    found.set(key, chain);
  }
  return [...found.values()].sort((a, b) => b.weight - a.weight);
}
