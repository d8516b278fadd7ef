// Input for building a tree, with its samples sorted by the split.
import type { Profile } from '../data/profile';
import type { Keys, SplitBy } from './keys';

export interface TreeRequest {
  profile: Profile;
  keys: Keys;
  /** For every thread 1 if its samples count. */
  threads: Uint8Array;
  /** What gets a root of its own. */
  split: SplitBy;
  /** How many causes there are, if each frame is to know its main one; 0: it is not. */
  causes?: number;
}

export interface Group {
  /** Key of its root; -1: it has no root of its own. */
  key: number;
  /** Numbers of samples. */
  samples: Uint32Array;
}

/** The chosen samples, together or by group. */
export function groupSamples({ profile, keys, threads, split }: TreeRequest): Group[] {
  const { thread, endpoint, wait } = profile.samples;
  const { first, count } = split === 'none' ? { first: -1, count: 1 } : keys.groups(split);
  const groupOf = {
    none: () => 0,
    thread: (i: number) => thread[i]!,
    group: (i: number) => keys.poolOfThread[thread[i]!]!,
    endpoint: (i: number) => endpoint[i]!,
    cause: (i: number) => wait[i]!,
  }[split];
  const sizes = new Uint32Array(count);
  for (let i = 0; i < thread.length; i++) if (threads[thread[i]!]) sizes[groupOf(i)]! += 1;
  const starts = new Uint32Array(count + 1);
  for (let g = 0; g < count; g++) starts[g + 1] = starts[g]! + sizes[g]!;
  const order = new Uint32Array(starts[count]!);
  const free = starts.slice();
  for (let i = 0; i < thread.length; i++) {
    if (threads[thread[i]!]) order[free[groupOf(i)]!++] = i;
  }
  const groups: Group[] = [];
  for (let g = 0; g < count; g++) {
    const samples = order.subarray(starts[g], starts[g + 1]);
    if (samples.length > 0) groups.push({ key: first < 0 ? -1 : first + g, samples });
  }
  return split === 'none' && groups.length === 0 ? [{ key: -1, samples: order }] : groups;
}
