// What stands out in a recording, as sentences with a place to look: facts that the page's own
// tables hold, put in words. Nothing is guessed: what the recording does not hold is not spoken of.
import { causeWords } from '../flame/causes';
import type { Shared, View } from '../state/fragment';
import { CPU_TIME, duration, percent, plural } from './format';
import { greatest, locksOf } from './locks';
import { IDLE } from './measure';
import { placesOf } from './places';
import { shortened } from './plain';
import type { Profile } from './profile';
import { type EndpointRow, endpointRows } from './requests';
import { methodOf, placeOf, shortName } from './stacks';
import { inAll, longest, standing } from './stretches';
import { causesOf, splitBy, sum, type WallFilter } from './wall';

/** A fact, and where the page shows it. */
export interface Fact {
  title: string;
  text: string;
  /** The cause whose colour goes with it; empty: none. */
  cause: string;
  view: View;
  change: Partial<Shared>;
}

/** Endpoints that are spoken of, and the requests that each must have had. */
const ENDPOINTS_MAX = 3;
const REQUESTS_MIN = 5;
/** Shares of the wall time of working threads that are worth a sentence. */
const LOCK_SHARE = 0.05;
const RUNNABLE_SHARE = 0.1;
const PAUSE_SHARE = 0.02;
const THROTTLED_SHARE = 0.05;
const LONG_PAUSE_NS = 100e6;
const LONG_REACHING_NS = 10e6;
const LOST_SHARE = 0.05;
const NAME_MAX = 80;

export function standout(
  profile: Profile,
  filter: WallFilter,
  rows: readonly EndpointRow[] = endpointRows(profile, filter),
): Fact[] {
  const work = working(profile, filter);
  return [
    ...slowEndpoints(profile, filter, rows),
    ...contention(profile, filter, work),
    ...starvation(profile, filter, work),
    ...stops(profile),
    ...hottest(profile, filter),
    ...missing(profile),
  ];
}

function slowEndpoints(
  profile: Profile,
  filter: WallFilter,
  endpoints: readonly EndpointRow[],
): Fact[] {
  const rows = endpoints.filter((row) => row.kept >= REQUESTS_MIN);
  const causes = causesOf(profile);
  return rows.slice(0, ENDPOINTS_MAX).map((row, i) => {
    const slow = `p95 ${duration(row.p95)}, median ${duration(row.p50)}.`;
    const all = row.split ? sum(row.split) : 0;
    const split = row.split ?? new Float64Array(1);
    const cause = split.indexOf(Math.max(...split));
    const endpoint = row.endpoint === 0 ? null : row.name;
    const [place] =
      all > 0 && endpoint !== null
        ? placesOf(profile, { ...filter, endpoint, request: 0 }, cause)
        : [];
    const where = place ? `, mostly in ${shortName(profile, place.node)}` : '';
    const why =
      all > 0
        ? ` ${percent(split[cause]! / all)} of that time it was ${causeWords(causes[cause]!)}${where}.`
        : '';
    return {
      title: `${shortened(row.name, NAME_MAX)} is ${i === 0 ? 'the slowest endpoint' : 'slow too'}`,
      text: slow + why,
      cause: all > 0 ? causes[cause]! : '',
      view: 'requests',
      change: { measure: { time: 'wall', endpoint } },
    };
  });
}

/** Wall time of threads at work. */
interface Work {
  split: Float64Array;
  all: number;
  of: string;
}

/**
 * Wall time by cause of threads at work: those that work for a request, or, if nothing is known of
 * any, all but pooled workers that had nothing to do.
 */
function working(profile: Profile, filter: WallFilter): Work {
  const causes = causesOf(profile);
  const forRequests = profile.header.endpoints.length > 0;
  const splits = splitBy(profile, filter, ({ of, i }) => (forRequests && !of.endpoint[i] ? -1 : 0));
  const split = splits.get(0) ?? new Float64Array(causes.length);
  const idle = causes.indexOf(IDLE);
  const all = sum(split) - (idle >= 0 ? split[idle]! : 0);
  return { split, all, of: forRequests ? 'requests' : 'working threads' };
}

function contention(profile: Profile, filter: WallFilter, { all }: Work): Fact[] {
  const { locks } = locksOf(profile, filter, false);
  const [lock] = locks;
  if (!lock || lock.weight < LOCK_SHARE * all) return [];
  const [waiter] = greatest(lock.waiterNodes, 1);
  const [holder] = greatest(lock.ownerNodes, 1);
  const at = waiter ? `, mostly in ${shortName(profile, placeOf(profile, waiter[0]))}` : '';
  const where = holder ? `, held in ${shortName(profile, placeOf(profile, holder[0]))}` : '';
  return [
    {
      title: `Threads wait for each other: ${shortened(lock.name, NAME_MAX)}`,
      text: `${plural(lock.waiters.size, 'thread')} waited ${duration(lock.weight)} for it${at}${where}.`,
      cause: lock.cause,
      view: 'locks',
      change: {},
    },
  ];
}

function starvation(profile: Profile, filter: WallFilter, { split, all, of }: Work): Fact[] {
  const causes = causesOf(profile);
  const time = (cause: string) => split[causes.indexOf(cause)] ?? 0;
  const told = (cause: string) => `${percent(time(cause) / all)} of the time of ${of}`;
  const shown = (cause: string): Partial<Shared> => ({
    measure: { time: { cause }, endpoint: filter.endpoint },
  });
  const limit = profile.header.cpuLimit;
  const held = limit && limit.periods > 0 && limit.throttled >= THROTTLED_SHARE * limit.periods;
  const facts: Fact[] = [];
  // Threads that stand for a quota all come back at once, and wait for each other then.
  const follows = held && time('throttled') >= time('runnable');
  if (all > 0 && time('runnable') >= RUNNABLE_SHARE * all && !follows) {
    facts.push({
      title: 'Threads that are ready wait for a processor',
      text: `${told('runnable')}, ${duration(time('runnable'))} in all.`,
      cause: 'runnable',
      view: 'flame',
      change: shown('runnable'),
    });
  }
  if (held) {
    const part = percent(limit.throttled / limit.periods);
    const isSeen = all > 0 && time('throttled') > 0;
    facts.push({
      title: 'The CPU quota holds the process back',
      text:
        `In ${part} of the periods of its control group, ${duration(limit.throttledNs)} in all` +
        `${isSeen ? `: ${told('throttled')}` : ''}.`,
      cause: 'throttled',
      view: isSeen ? 'flame' : 'overview',
      change: isSeen ? shown('throttled') : {},
    });
  }
  return facts;
}

function stops(profile: Profile): Fact[] {
  const { stops, late, header, names, threads } = profile;
  const facts: Fact[] = [];
  for (const stretches of standing(profile)) {
    const { kind } = stretches;
    const [all, most] = [sum(stretches.duration), longest(stretches)];
    const share = header.info.durationNs > 0 ? all / header.info.durationNs : 0;
    if (kind.much === '' || (share < PAUSE_SHARE && most < LONG_PAUSE_NS)) continue;
    facts.push({
      title: kind.much,
      text: `${inAll(stretches)} (${percent(share)} of the time), the longest ${duration(most)}.`,
      cause: kind.cause,
      view: 'safepoints',
      change: {},
    });
  }
  let worst = -1;
  for (let i = 0; i < late.held.length; i++) {
    if (worst < 0 || late.held[i]! > late.held[worst]!) worst = i;
  }
  const reaching = stops.reaching.reduce(
    (a, b, i) => (stops.count[i] === 1 ? Math.max(a, b) : a),
    0,
  );
  if (reaching >= LONG_REACHING_NS) {
    const who =
      worst < 0
        ? ''
        : ` Last came ${shortened(names.text(threads.name[late.thread[worst]!]!), 60)}.`;
    facts.push({
      title: 'All threads wait long for a safepoint',
      text: `Up to ${duration(reaching)} until the last one stopped.${who}`,
      cause: 'safepoint',
      view: 'safepoints',
      change: {},
    });
  }
  return facts;
}

function hottest(profile: Profile, filter: WallFilter): Fact[] {
  const { samples, nodes } = profile;
  const sums = new Map<number, { node: number; weight: number }>();
  let all = 0;
  for (let i = 0; i < samples.node.length; i++) {
    if (filter.threads[samples.thread[i]!] !== 1 || samples.role[i] !== 0) continue;
    all += samples.weight[i]!;
    const node = samples.node[i]!;
    const method = methodOf(profile, node);
    if (method < 0 || nodes.parent.length === 0) continue;
    const row = sums.get(method) ?? { node, weight: 0 };
    row.weight += samples.weight[i]!;
    sums.set(method, row);
  }
  const [first] = [...sums.values()].sort((a, b) => b.weight - a.weight);
  if (!first || all === 0) return [];
  const isTime = (profile.header.measured ?? CPU_TIME) === CPU_TIME;
  const [most, of] = isTime
    ? ['Most CPU time is spent', CPU_TIME]
    : ['Most samples are', 'samples'];
  return [
    {
      title: `${most} in ${shortened(shortName(profile, first.node), NAME_MAX)}`,
      text: `${percent(first.weight / all)} of the ${of} of the program's threads.`,
      cause: 'running',
      view: 'flame',
      change: { measure: { time: 'cpu', endpoint: null } },
    },
  ];
}

function missing({ header, samples }: Profile): Fact[] {
  const lost = header.losses.reduce((all, loss) => all + loss.samples, 0);
  const share = lost / Math.max(1, lost + samples.node.length);
  if (share < LOST_SHARE) return [];
  return [
    {
      title: 'Samples are missing',
      text: `${percent(share)} of them were lost; what is shown may be wrong by as much.`,
      cause: '',
      view: 'overview',
      change: {},
    },
  ];
}
