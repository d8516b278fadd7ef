// What a tree is to be built from, and its samples sorted by thread.
import type { Profile } from '../data/profile';
import type { Keys } from './keys';

export interface TreeRequest {
  profile: Profile;
  keys: Keys;
  /** For every thread 1 if its samples count. */
  threads: Uint8Array;
  /** Whether every thread gets a root of its own. */
  split: boolean;
}

export interface Group {
  /** -1: all threads. */
  thread: number;
  /** Numbers of samples. */
  samples: Uint32Array;
}

/** The chosen samples, together or by thread. */
export function groupSamples({ profile, threads, split }: TreeRequest): Group[] {
  const { thread } = profile.samples;
  const sizes = new Uint32Array(threads.length);
  for (let i = 0; i < thread.length; i++) if (threads[thread[i]!]) sizes[thread[i]!]! += 1;
  const starts = new Uint32Array(threads.length + 1);
  for (let t = 0; t < threads.length; t++) starts[t + 1] = starts[t]! + sizes[t]!;
  const order = new Uint32Array(starts[threads.length]!);
  const free = starts.slice();
  for (let i = 0; i < thread.length; i++) {
    if (threads[thread[i]!]) order[free[thread[i]!]!++] = i;
  }
  if (!split) return [{ thread: -1, samples: order }];
  const groups: Group[] = [];
  for (let t = 0; t < threads.length; t++) {
    const samples = order.subarray(starts[t], starts[t + 1]);
    if (samples.length > 0) groups.push({ thread: t, samples });
  }
  return groups;
}
