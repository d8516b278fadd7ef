// Sampled objects that are still there, by class, with their age.
import { eachOf } from './allocations';
import type { Profile } from './profile';
import type { WallFilter } from './wall';

/** Number of parts of the recording by which the allocation of live objects is split. */
export const PARTS = 3;

/** Live objects of one class. */
export interface AliveRow {
  /** A name's number. */
  name: number;
  /** Survivors of a collection: bytes, objects, samples. */
  bytes: number;
  objects: number;
  samples: number;
  /** One standard error of the bytes, from the samples alone. */
  error: number;
  /** Age of the oldest, in nanoseconds. */
  oldest: number;
  /** The bytes by the third of the time followed in which they were allocated. */
  parts: number[];
  /** Bytes not yet seen by a GC. */
  young: number;
}

/** By class, the most bytes first. */
export function aliveRows(profile: Profile, filter: WallFilter): AliveRow[] {
  const { alive, header } = profile;
  if (!alive) return [];
  const { samples, class: names, objects, age, collections } = alive;
  const rows = new Map<number, AliveRow>();
  const { fromNs = 0, toNs = 0 } = header.alive ?? {};
  const length = Math.max(1, toNs - fromNs);
  eachOf(samples, header, filter, (i) => {
    const name = names[i]!;
    let row = rows.get(name);
    if (!row) {
      const parts = new Array<number>(PARTS).fill(0);
      row = { name, bytes: 0, objects: 0, samples: 0, error: 0, oldest: 0, parts, young: 0 };
      rows.set(name, row);
    }
    const bytes = samples.weight[i]!;
    if (collections[i] === 0) {
      row.young += bytes;
      return;
    }
    row.bytes += bytes;
    row.objects += objects[i]!;
    row.samples++;
    row.oldest = Math.max(row.oldest, age[i]!);
    const part = Math.floor(((samples.time[i]! - fromNs) / length) * PARTS);
    row.parts[Math.max(0, Math.min(PARTS - 1, part))]! += bytes;
    // An object of size s that stands for w bytes was chosen with a chance of s / w.
    const own = objects[i]! > 0 ? bytes / objects[i]! : 0;
    row.error += bytes * Math.max(0, bytes - own);
  });
  for (const row of rows.values()) row.error = Math.sqrt(row.error);
  return [...rows.values()].sort(
    (a, b) => b.bytes - a.bytes || b.young - a.young || a.name - b.name,
  );
}
