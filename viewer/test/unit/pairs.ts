// Two recordings in one profile, and what is compared of them.
import type { Compare, Profile } from '../../src/data/profile';
import { buildDiff, type Width } from '../../src/diff/build';
import { sidesOfRecordings } from '../../src/diff/sides';
import type { Per } from '../../src/diff/statistics';
import { makeKeys } from '../../src/tree/keys';
import { atOnce } from '../../src/tree/slices';
import { profileOf } from './art';

/** Two recordings in one: the first threads are those of the first. */
export function two(art: string, threadsOfA: number, change: Partial<Compare> = {}): Profile {
  const profile = profileOf(art);
  const side = {
    name: '',
    durationNs: 2e9,
    samples: 0,
    requests: 4,
    requestsOf: [],
    cpuNs: 0,
    jvm: '',
    arguments: '',
    mode: '',
    failed: 0,
  };
  const compare: Compare = {
    per: 'second',
    possible: ['second', 'sample'],
    threadsOfA,
    isOneUnit: true,
    sides: [side, { ...side, durationNs: 1e9 }],
    ...change,
  };
  return { ...profile, header: { ...profile.header, compare } };
}

export const ALL = (profile: Profile) => new Uint8Array(profile.threads.name.length).fill(1);

export function built(profile: Profile, per: Per, width: Width) {
  const keys = makeKeys(profile, false);
  const threads = ALL(profile);
  const sides = sidesOfRecordings(profile, threads, per, null)!;
  const request = { profile, keys, threads, split: 'none' as const };
  const { tree, diff } = atOnce(buildDiff(request, sides, width));
  const nodes = new Map<string, number>();
  for (let node = 1; node < tree.size; node++) nodes.set(keys.label(tree.key(node)), node);
  return { tree, diff, keys, sides, node: (label: string) => nodes.get(label)! };
}

export const PAIR = `
  thread: a    a    b    b
  weight: 40   20   30   10
          m.M.x m.M.x m.M.x m.M.x
          m.M.y m.M.gone m.M.y m.M.new`;
