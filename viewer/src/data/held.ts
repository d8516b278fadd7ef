// Holders of monitors, with their stacks when sampled waits began.
import { poolOf } from '../tree/select';
import type { Column } from './columns';
import { greatest } from './locks';
import type { Profile } from './profile';
import { methodOf, placeOf } from './stacks';
import type { WallFilter } from './wall';
import { partIn, shareIn } from './window';

/** Waits that asked where the owner was; weights are nanoseconds of all waits they stand for. */
export interface HeldTable {
  time: Float64Array;
  /** How long the wait lasted. */
  duration: Float64Array;
  /** A name's number. */
  class: Uint32Array;
  ns: Float64Array;
  choices: Uint32Array;
  /** Numbers plus 1; 0: not known. */
  owner: Uint32Array;
  node: Uint32Array;
  waiter: Uint32Array;
  waiterNode: Uint32Array;
}

/** The time in which monitors of one class were held at one place. */
export interface HeldRow {
  /** A name's number. */
  class: number;
  /** Where the owner was, by the stack with the most time; 0: not known. */
  node: number;
  /** Time by stack of the owner. */
  nodes: Map<number, number>;
  ns: number;
  /** One standard error of the time. */
  error: number;
  samples: number;
  /** Time by group of holders, by group of waiters, and by the waiters' places. */
  owners: Map<string, number>;
  waiters: Map<string, number>;
  waiterNodes: Map<number, number>;
}

export function readHeld(column: (name: string) => Column): HeldTable {
  return {
    time: column('held.time').f64(),
    duration: column('held.duration').f64(),
    class: column('held.class').u32(),
    ns: column('held.ns').f64(),
    choices: column('held.choices').u32(),
    owner: column('held.owner').u32(),
    node: column('held.node').u32(),
    waiter: column('held.waiter').u32(),
    waiterNode: column('held.waiter_node').u32(),
  };
}

/**
 * By class and the program's method that the owner was in, the most time first. Of the filter the threads that waited and
 * the part of the time count; for which request it was is not known.
 */
export function heldRows(profile: Profile, { threads, during }: WallFilter): HeldRow[] {
  const { held, names } = profile;
  const rows = new Map<string, HeldRow>();
  if (!held) return [];
  const pool = (thread: number) =>
    thread < 0 ? '' : poolOf(names.text(profile.threads.name[thread] ?? 0));
  for (let i = 0; i < held.ns.length; i++) {
    const waiter = held.waiter[i]! - 1;
    const [time, duration] = [held.time[i]!, held.duration[i]!];
    if (waiter >= 0 && threads[waiter] !== 1) continue;
    if (shareIn(time, duration, during) <= 0) continue;
    const node = Math.max(0, held.node[i]! - 1);
    // Stacks that differ in lines or in frames of the runtime are of one place.
    const place = node === 0 ? -1 : methodOf(profile, placeOf(profile, node));
    const key = `${held.class[i]!} ${place}`;
    const row = rows.get(key) ?? empty(held.class[i]!, node);
    const ns = partIn(held.ns[i]!, time, duration, during);
    row.ns += ns;
    // A variance until all are summed up.
    row.error += (ns * ns) / Math.max(1, held.choices[i]!);
    row.samples += partIn(1, time, duration, during);
    add(row.nodes, node, ns);
    add(row.owners, pool(held.owner[i]! - 1), ns);
    add(row.waiters, pool(waiter), ns);
    add(row.waiterNodes, Math.max(0, held.waiterNode[i]! - 1), ns);
    rows.set(key, row);
  }
  for (const row of rows.values()) {
    row.error = Math.sqrt(row.error);
    row.node = greatest(row.nodes, 1)[0]![0];
  }
  return [...rows.values()].sort((a, b) => b.ns - a.ns || a.node - b.node);
}

function empty(name: number, node: number): HeldRow {
  return {
    ...{ class: name, node, ns: 0, error: 0, samples: 0 },
    ...{ nodes: new Map(), owners: new Map(), waiters: new Map(), waiterNodes: new Map() },
  };
}

function add<K>(sums: Map<K, number>, key: K, value: number): void {
  sums.set(key, (sums.get(key) ?? 0) + value);
}
