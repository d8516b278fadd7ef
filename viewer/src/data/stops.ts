// Safepoints: the longest, sums by operation, and the threads that others waited for.
import type { Profile, Span } from './profile';
import { partIn, shareIn } from './window';

export interface Operation {
  /** A name's number; -1: these were only counted. */
  operation: number;
  count: number;
  reaching: number;
  operating: number;
  /** The longest single one, with its part in the range. */
  longest: number;
}

/** Sums by what the JVM stopped for, the longest first. */
export function operationsOf({ stops }: Profile, during: Span | null): Operation[] {
  const rows = new Map<number, Operation>();
  for (let i = 0; i < stops.time.length; i++) {
    const [time, reaching, operating] = [stops.time[i]!, stops.reaching[i]!, stops.operating[i]!];
    const whole = reaching + operating;
    if (shareIn(time, whole, during) <= 0) continue;
    const operation = stops.known[i] === 1 ? stops.operation[i]! : -1;
    const empty = { operation, count: 0, reaching: 0, operating: 0, longest: 0 };
    const row = rows.get(operation) ?? empty;
    row.count += partIn(stops.count[i]!, time, whole, during);
    const reached = partIn(reaching, time, reaching, during);
    const operated = partIn(operating, time + reaching, operating, during);
    row.reaching += reached;
    row.operating += operated;
    if (stops.count[i] === 1) row.longest = Math.max(row.longest, reached + operated);
    rows.set(operation, row);
  }
  return [...rows.values()].sort((a, b) => b.reaching + b.operating - (a.reaching + a.operating));
}

/** Numbers of safepoints: recorded one by one, and only counted. */
export function countsOf(
  { stops }: Profile,
  during: Span | null,
): [known: number, counted: number] {
  const counts: [number, number] = [0, 0];
  for (let i = 0; i < stops.time.length; i++) {
    const whole = stops.reaching[i]! + stops.operating[i]!;
    counts[stops.known[i] === 1 ? 0 : 1] += partIn(stops.count[i]!, stops.time[i]!, whole, during);
  }
  return counts;
}

/** Places of the longest safepoints that were seen one by one. */
export function longestStops({ stops }: Profile, during: Span | null, most: number): number[] {
  const length = (i: number) => stops.reaching[i]! + stops.operating[i]!;
  const list: number[] = [];
  for (let i = 0; i < stops.time.length; i++) {
    const isIn = shareIn(stops.time[i]!, length(i), during) > 0;
    if (stops.count[i] === 1 && stops.known[i] === 1 && isIn) list.push(i);
  }
  return list.sort((a, b) => length(b) - length(a)).slice(0, most);
}

/** Place of the thread that came last to a safepoint, by its number; the later one's of two. */
export function lastFor({ late }: Profile, stop: number): number | undefined {
  let last: number | undefined;
  for (let i = 0; i < late.stop.length; i++) {
    if (late.stop[i] !== stop || late.last[i] !== 1) continue;
    if (last === undefined || late.duration[i]! > late.duration[last]!) last = i;
  }
  return last;
}

export interface Culprit {
  thread: number;
  state: number;
  /** A node's number plus 1; 0: not seen. */
  node: number;
  held: number;
  times: number;
  /** A place in the header's list of reasons. */
  reason: number;
}

/** Late threads, by thread and place, the longest delay first. */
export function culpritsOf({ late }: Profile, during: Span | null, most: number): Culprit[] {
  const rows = new Map<string, Culprit>();
  for (let i = 0; i < late.time.length; i++) {
    const [time, duration] = [late.time[i]!, late.duration[i]!];
    const held = partIn(late.held[i]!, time, duration, during);
    if (held <= 0) continue;
    const [thread, node, state] = [late.thread[i]!, late.node[i]!, late.state[i]!];
    const key = `${thread} ${node} ${state}`;
    const row = rows.get(key) ?? {
      thread,
      state,
      node,
      held: 0,
      times: 0,
      reason: late.reason[i]!,
    };
    row.held += held;
    row.times += partIn(1, time, duration, during);
    rows.set(key, row);
  }
  return [...rows.values()].sort((a, b) => b.held - a.held).slice(0, most);
}
