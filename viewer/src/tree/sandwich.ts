// Callers and callees of a method, all its calls merged. Pure.
import type { Profile } from '../data/profile';
import type { Keys } from './keys';

export interface Neighbour {
  /** A key; -1: the stack begins or ends here. */
  key: number;
  weight: number;
}

export interface Sandwich {
  /** Total with callees, each stack once. */
  total: number;
  own: number;
  /** Heaviest first. */
  callers: Neighbour[];
  callees: Neighbour[];
}

export function sandwich(
  profile: Profile,
  keys: Keys,
  threads: Uint8Array,
  wanted: number,
): Sandwich {
  const { samples } = profile;
  const { parent, frame } = profile.nodes;
  const n = parent.length;
  const own = new Float64Array(n);
  for (let i = 0; i < samples.node.length; i++) {
    if (threads[samples.thread[i]!]) own[samples.node[i]!]! += samples.weight[i]!;
  }
  const total = own.slice();
  for (let node = n - 1; node > 0; node--) total[parent[node]!]! += total[node]!;
  /** 1 on the stack of a call, 2 a call itself or one that it makes of itself at once. */
  const state = new Uint8Array(n);
  const callers = new Map<number, number>();
  const callees = new Map<number, number>();
  const add = (to: Map<number, number>, key: number, weight: number) => {
    if (weight > 0) to.set(key, (to.get(key) ?? 0) + weight);
  };
  let [sum, self] = [0, 0];
  for (let node = 1; node < n; node++) {
    const above = parent[node]!;
    const key = keys.ofFrame[frame[node]!]!;
    const is = key === wanted;
    // Of a method that calls itself only the outermost call counts: the others are inside of it.
    if (state[above] === 0) {
      if (!is) continue;
      state[node] = 2;
      sum += total[node]!;
      add(callers, above === 0 ? -1 : keys.ofFrame[frame[above]!]!, total[node]!);
    } else {
      state[node] = is && state[above] === 2 ? 2 : 1;
      if (!is && state[above] === 2) add(callees, key, total[node]!);
    }
    if (state[node] === 2) self += own[node]!;
  }
  const sorted = (of: Map<number, number>) =>
    [...of].map(([key, weight]) => ({ key, weight })).sort((a, b) => b.weight - a.weight);
  return { total: sum, own: self, callers: sorted(callers), callees: sorted(callees) };
}
