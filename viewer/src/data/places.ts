// Where wall time was spent, by the method of the program that says most to a reader.
import type { Profile } from './profile';
import { methodOf, placeOf } from './stacks';
import { eachWall, type WallFilter } from './wall';

export interface Place {
  /** A node whose frame is the method. */
  node: number;
  /** Some whole stack in it. */
  stack: number;
  weight: number;
}

/** The places of some wall time, the heaviest first; `cause` below 0: of all causes. */
export function placesOf(profile: Profile, filter: WallFilter, cause: number): Place[] {
  const known = new Map<number, number>();
  const places = new Map<number, Place & { heaviest: number }>();
  eachWall(profile, filter, (entry) => {
    if (cause >= 0 && entry.cause !== cause) return;
    const stack = entry.of.node[entry.i]!;
    let node = known.get(stack);
    if (node === undefined) known.set(stack, (node = placeOf(profile, stack)));
    const method = methodOf(profile, node);
    const place = places.get(method) ?? { node, stack, weight: 0, heaviest: 0 };
    place.weight += entry.weight;
    if (entry.weight > place.heaviest) {
      place.heaviest = entry.weight;
      place.stack = stack;
      place.node = node;
    }
    places.set(method, place);
  });
  return [...places.values()].sort((a, b) => b.weight - a.weight);
}
