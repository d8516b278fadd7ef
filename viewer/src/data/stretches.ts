// Stretches of time in the recording. Their descriptions come with them, and this module knows no
// kind of them.
import { count, duration, plural } from './format';
import { plain } from './plain';
import type { Profile, Stretches } from './profile';
import { sum } from './wall';

/** Those in which all threads stand still. */
export function standing(profile: Profile): Stretches[] {
  return profile.stretches.filter(({ kind }) => kind.allStand);
}

/** Whether the recording has safepoints, or other pauses of all threads. */
export function hasStops(profile: Profile): boolean {
  return profile.stops.time.length > 0 || standing(profile).length > 0;
}

/** How many, how long all together, and the longest. */
export function inAll({ kind, duration: lengths }: Stretches): string {
  return `${plural(lengths.length, kind.one)}, ${duration(sum(lengths))} in all`;
}

export function longest({ duration: lengths }: Stretches): number {
  return lengths.reduce((a, b) => Math.max(a, b), 0);
}

/** Known facts of a stretch, by label. */
export function factsOf(profile: Profile, of: Stretches, i: number): [string, string][] {
  const { labels, forms } = of.kind;
  const told = labels.map((label, at): [string, string] => {
    const value = of.facts[at]![i]!;
    switch (forms[at]) {
      case 'text':
        return [label, plain(profile.names.text(value))];
      case 'thread':
        return [
          label,
          value > 0 ? plain(profile.names.text(profile.threads.name[value - 1]!)) : '',
        ];
      case 'ns':
        return [label, duration(value)];
      case 'number':
        return [label, count(value)];
      default:
        return [label, ''];
    }
  });
  return told.filter(([, value]) => value !== '');
}
