// Kinds of code. Classes that are allocated, alive or locked are frames on top of code. The file
// calls them other code, and this module gives them a kind of their own. Pure.
import type { Header, Profile } from './profile';

const OTHER = 'other';
export const CLASS = 'class';

/** Number of the kind of classes; -1 if the recording has no classes. */
export function classKind({ kinds }: Header): number {
  return kinds.indexOf(CLASS);
}

/** The same profile, its classes of a kind of their own. */
export function withClasses(profile: Profile): Profile {
  const { allocations, alive, locks, nodes, header } = profile;
  const tables = [allocations, alive, locks].filter((table) => table !== null);
  const other = header.kinds.indexOf(OTHER);
  if (tables.length === 0 || other < 0 || classKind(header) >= 0) return profile;
  const kind = profile.frames.kind.slice();
  for (const { samples } of tables) {
    for (const node of samples.node) {
      const frame = nodes.frame[node]!;
      if (node !== 0 && kind[frame] === other) kind[frame] = header.kinds.length;
    }
  }
  return {
    ...profile,
    header: { ...header, kinds: [...header.kinds, CLASS] },
    frames: { ...profile.frames, kind },
  };
}

export interface KindShares {
  /** By kind, of all. */
  shares: number[];
  /** Whether what is shown ends in classes. */
  areClasses: boolean;
}

/**
 * Self time by kind of code, of the chosen threads. Weight of a class counts for the code below it,
 * which allocated it or waited for it.
 */
export function kindShares(profile: Profile, threads: Uint8Array): KindShares {
  const { header, samples, nodes, frames } = profile;
  const sums = header.kinds.map(() => 0);
  const classes = classKind(header);
  let [all, areClasses] = [0, false];
  for (let i = 0; i < samples.node.length; i++) {
    if (!threads[samples.thread[i]!]) continue;
    const weight = samples.weight[i]!;
    all += weight;
    let node = samples.node[i]!;
    if (node === 0) continue;
    if (frames.kind[nodes.frame[node]!] === classes) {
      areClasses = true;
      // Without a stack the code is unknown.
      node = nodes.parent[node]!;
      if (node === 0) continue;
    }
    sums[frames.kind[nodes.frame[node]!]!]! += weight;
  }
  return { shares: sums.map((sum) => (all > 0 ? sum / all : 0)), areClasses };
}
