// What was allocated: by class, and over the time of the recording.
import type { Header, Profile, Samples } from './profile';
import { emptyStrip, spread, type Strip, type WallFilter, wholeSpan } from './wall';
import { hasInstant } from './window';

/** Allocations of one class. */
export interface ClassRow {
  /** A name's number. */
  name: number;
  bytes: number;
  objects: number;
  samples: number;
  /** One standard error of the bytes, from the samples alone. */
  error: number;
}

/** Shows every entry of a table of objects that a filter takes. */
export function eachOf(
  samples: Samples,
  header: Header,
  filter: WallFilter,
  see: (i: number) => void,
): void {
  const { threads, endpoint, during, request } = filter;
  const number = endpoint === null ? -1 : header.endpoints.indexOf(endpoint) + 1;
  for (let i = 0; i < samples.node.length; i++) {
    if (threads[samples.thread[i]!] !== 1) continue;
    if (number >= 0 && samples.endpoint[i] !== number) continue;
    if (request !== 0 && samples.request[i] !== request) continue;
    if (!hasInstant(samples.time[i]!, during)) continue;
    see(i);
  }
}

/** Shows every allocation that a filter takes. */
function each(profile: Profile, filter: WallFilter, see: (i: number) => void): void {
  const { allocations, header } = profile;
  if (allocations) eachOf(allocations.samples, header, filter, see);
}

/** By class, the most bytes first. */
export function classRows(profile: Profile, filter: WallFilter): ClassRow[] {
  const rows = new Map<number, ClassRow>();
  const squares = new Map<number, number>();
  each(profile, filter, (i) => {
    const { samples, class: names, objects } = profile.allocations!;
    const name = names[i]!;
    const row = rows.get(name) ?? { name, bytes: 0, objects: 0, samples: 0, error: 0 };
    const [bytes, count] = [samples.weight[i]!, Math.max(1, samples.count[i]!)];
    row.bytes += bytes;
    row.objects += objects[i]!;
    row.samples += count;
    rows.set(name, row);
    // An object of size s that stands for w bytes was chosen with a chance of s / w.
    const [weight, size] = [bytes / count, objects[i]! > 0 ? bytes / objects[i]! : 0];
    const square = count * weight * Math.max(0, weight - size);
    squares.set(name, (squares.get(name) ?? 0) + square);
  });
  for (const row of rows.values()) row.error = Math.sqrt(squares.get(row.name) ?? 0);
  return [...rows.values()].sort((a, b) => b.bytes - a.bytes || a.name - b.name);
}

/** Bytes over all of the recording, whatever the filter's part of it. */
export function allocatedStrip(profile: Profile, filter: WallFilter, bins: number): Strip {
  const strip = emptyStrip(wholeSpan(profile), 1, bins);
  each(profile, { ...filter, during: null }, (i) => {
    const { samples } = profile.allocations!;
    spread(strip, 0, samples.time[i]!, samples.time[i]!, samples.weight[i]!);
  });
  return strip;
}
