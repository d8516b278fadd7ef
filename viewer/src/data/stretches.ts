// Stretches of time in the recording. Their descriptions come with them, and this module knows no
// kind of them.
import { count, duration, plural } from './format';
import { plain } from './plain';
import type { Profile, Span, Stretches } from './profile';
import { partIn } from './window';

/** Those in which all threads stand still. */
export function standing(profile: Profile): Stretches[] {
  return profile.stretches.filter(({ kind }) => kind.allStand);
}

/** Whether the recording has safepoints, or other pauses of all threads. */
export function hasStops(profile: Profile): boolean {
  return profile.stops.time.length > 0 || standing(profile).length > 0;
}

/** How many in a range, their time in it, and the longest part of one in it. */
export function summaryOf(stretches: Stretches, during: Span | null): string {
  const { kind, time, duration: lengths } = stretches;
  let [n, all, longest] = [0, 0, 0];
  for (let i = 0; i < time.length; i++) {
    const part = partIn(lengths[i]!, time[i]!, lengths[i]!, during);
    n += partIn(1, time[i]!, lengths[i]!, during);
    all += part;
    longest = Math.max(longest, part);
  }
  if (n === 0 && all === 0) return `No ${kind.one} in the time range.`;
  return `${plural(n, kind.one)}, ${duration(all)} in all, the longest ${duration(longest)}.`;
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
