// Colours by package: the packages that spend most have one each, all others share one. Pure.
import type { Profile } from '../data/profile';
import type { Keys } from '../tree/keys';
import { packageOf } from '../tree/transform';

/** Places in the palette of kinds that packages have; the last one is that of all others. */
export const PACKAGE_PAINTS: readonly number[] = [1, 4, 2, 0, 3, 6, 5, 7];
export const OTHERS_PAINT = 9;

export interface Packages {
  /** By key: the place in the palette. */
  ofKey: Uint8Array;
  /** Those with a colour of their own, the heaviest first. */
  named: { name: string; paint: number; share: number }[];
}

export function packagesOf(profile: Profile, keys: Keys, threads: Uint8Array): Packages {
  const { samples, nodes } = profile;
  const own = new Float64Array(keys.count);
  let all = 0;
  for (let i = 0; i < samples.node.length; i++) {
    const node = samples.node[i]!;
    if (!threads[samples.thread[i]!]) continue;
    all += samples.weight[i]!;
    if (node !== 0) own[keys.ofFrame[nodes.frame[node]!]!]! += samples.weight[i]!;
  }
  const names = Array.from({ length: keys.methods }, (_, key) => packageOf(keys.className(key)));
  const sums = new Map<string, number>();
  names.forEach((name, key) => {
    if (name !== '') sums.set(name, (sums.get(name) ?? 0) + own[key]!);
  });
  const ofApplication = new Set(names.filter((_, key) => keys.own[key] === 1));
  const isOwn = (name: string) => Number(ofApplication.has(name));
  // The application's packages come first: the first colours are the strongest.
  const heaviest = [...sums]
    .filter(([, weight]) => weight > 0)
    .sort((a, b) => isOwn(b[0]) - isOwn(a[0]) || b[1] - a[1]);
  const named = heaviest.slice(0, PACKAGE_PAINTS.length).map(([name, weight], i) => ({
    name,
    paint: PACKAGE_PAINTS[i]!,
    share: weight / (all || 1),
  }));
  const paints = new Map(named.map(({ name, paint }) => [name, paint]));
  const ofKey = Uint8Array.from({ length: keys.count }, (_, key) =>
    key < keys.methods ? (paints.get(names[key]!) ?? OTHERS_PAINT) : OTHERS_PAINT,
  );
  return { ofKey, named };
}
