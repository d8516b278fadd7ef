// What is said about a place of the timeline: under the pointer, and to screen readers.
import { duration, plural } from '../data/format';
import type { LockTable } from '../data/locked';
import { kindOf, LOCKING } from '../data/locks';
import type { Profile } from '../data/profile';
import { endpointName, spanOf } from '../data/requests';
import { shortName } from '../data/stacks';
import { placeOf } from '../data/stacks';
import { causesOf } from '../data/wall';
import { causeWords } from '../flame/causes';
import { threadName } from '../tree/keys';
import type { Chosen, Hit } from './controller';
import { toldRuntime } from './runtime';

/** What is known of a step, or of a wait for a monitor. */
export interface Step {
  what: 'wall sample' | 'CPU sample' | 'wait';
  cause: string;
  node: number;
  time: number;
  duration: number;
  weight: number;
  count: number;
  /** What it waited for: a class. */
  detail: string;
  /** How many waits it stands for; 0: it is none. */
  waits: number;
  endpoint: number;
  request: number;
  /** -1: not known, as is the node. */
  owner: number;
  ownerNode: number;
}

export interface Told {
  title: string;
  kind: string;
  facts: [string, string][];
}

/** Facts about a step. */
export function stepOf(profile: Profile, chosen: Chosen): Step {
  if (chosen.wait >= 0 && profile.locks) return waitOf(profile, profile.locks, chosen.wait);
  const { ref } = chosen;
  const { wall, samples, names } = profile;
  const isLook = ref >= 0;
  const i = isLook ? ref : -1 - ref;
  const of = isLook ? wall!.looks : samples;
  const detail = isLook ? wall!.detail[i]! : 0;
  return {
    what: isLook ? 'wall sample' : 'CPU sample',
    cause: causesOf(profile)[of.wait[i]!] ?? 'running',
    node: of.node[i]!,
    time: of.time[i]!,
    duration: isLook ? wall!.duration[i]! : 0,
    weight: of.weight[i]!,
    count: of.count[i]!,
    detail: detail > 0 ? names.text(detail - 1) : '',
    waits: 0,
    endpoint: of.endpoint[i]!,
    request: of.request[i]!,
    owner: isLook ? wall!.owner[i]! - 1 : -1,
    ownerNode: isLook ? wall!.ownerNode[i]! - 1 : -1,
  };
}

/** The same of a wait for a monitor, which is known exactly. */
function waitOf({ nodes, names }: Profile, locks: LockTable, i: number): Step {
  const { samples } = locks;
  return {
    what: 'wait',
    cause: 'monitor',
    // The innermost frame is the lock's class.
    node: nodes.parent[samples.node[i]!]!,
    time: samples.time[i]!,
    duration: locks.longest[i]!,
    weight: samples.weight[i]!,
    count: samples.count[i]!,
    detail: names.text(locks.class[i]!),
    waits: locks.waits[i]!,
    endpoint: samples.endpoint[i]!,
    request: samples.request[i]!,
    owner: locks.owner[i]! - 1,
    ownerNode: -1,
  };
}

/** Whether two steps wait for the same lock. Of an exact wait only the lock's class is known. */
export function isSameWait(one: Step, other: Step): boolean {
  if (!LOCKING.includes(one.cause) || one.cause !== other.cause) return false;
  const name = one.what === 'wait' ? kindOf : (detail: string) => detail;
  return name(one.detail) === name(other.detail);
}

/** Weight of a wait in addition to its duration: shorter waits are selected by chance. */
export function standsFor({ waits, duration: lasted, weight }: Step): string {
  if (waits <= 1 || weight <= lasted) return '';
  return `about ${plural(waits, 'wait')} of ${duration(weight)} in all`;
}

export function tell(profile: Profile, hit: Hit): Told {
  const { lane, time } = hit;
  if (lane.kind === 'runtime') return toldRuntime(profile, lane.what, time);
  if (lane.kind === 'pool') {
    const threads = plural(lane.threads.length, 'thread');
    return { title: lane.name, kind: threads, facts: [['At', duration(time)]] };
  }
  const title = threadName(profile, lane.thread);
  if (hit.request > 0) {
    const span = spanOf(profile, hit.request)!;
    const endpoint = endpointName(profile, profile.requests.endpoint[hit.request - 1]!);
    const facts: [string, string][] = [
      ['Took', duration(span.to - span.from)],
      ['From', duration(span.from)],
    ];
    return { title: endpoint, kind: `request, on ${title}`, facts };
  }
  if (!hit.step) return { title, kind: 'no sample here', facts: [['At', duration(time)]] };
  const step = stepOf(profile, hit.step);
  const facts: [string, string][] = [['At', duration(step.time)]];
  const isWait = step.what === 'wait';
  if (step.duration > 0) facts.push([isWait ? 'Waited' : 'Duration', duration(step.duration)]);
  if (step.detail !== '') facts.push(['On', step.detail]);
  if (standsFor(step) !== '') facts.push(['Stands for', standsFor(step)]);
  if (step.owner >= 0) facts.push(['Held by', threadName(profile, step.owner)]);
  if (step.endpoint > 0) facts.push(['For', endpointName(profile, step.endpoint)]);
  if (step.node !== 0) facts.push(['In', shortName(profile, placeOf(profile, step.node))]);
  return { title, kind: `${step.cause}: ${causeWords(step.cause)}`, facts };
}

/** One sentence for a screen reader. */
export function spoken(told: Told): string {
  const facts = told.facts.map(([label, value]) => `${label} ${value}`).join(', ');
  return [told.title, told.kind, facts].filter((part) => part !== '').join('. ');
}
