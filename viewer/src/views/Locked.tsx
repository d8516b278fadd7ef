// Time in locks, by the lock's class; a class leads to the stacks that waited.
import { useComputed } from '@preact/signals';
import { count, duration, percent, plural } from '../data/format';
import { lockRows } from '../data/locked';
import { plain, shortened } from '../data/plain';
import type { Locked as Facts } from '../data/locked';
import { sum } from '../data/wall';
import type { Store } from '../state/store';
import { ClassTable } from './ClassTable';

const OWNER_MAX = 40;

export function Locked({ store }: { store: Store }) {
  const { profile } = store;
  const { locked, wall, compare, waitsNote } = profile.header;
  const rows = useComputed(() => lockRows(profile, store.filter.value));
  if (!locked || !profile.locks || compare) return null;
  return (
    <ClassTable
      store={store}
      id="locked"
      title="Blocked by locks, by class"
      label="Locks"
      table="locked"
      rows={rows.value}
      time="locks"
      head="Class of the lock"
      sum={{ head: 'Blocked', of: ({ ns }) => ns, text: duration }}
      caption={
        <>
          {duration(sum(rows.value.map(({ ns }) => ns)))} in{' '}
          {plural(sum(rows.value.map(({ samples }) => samples)), 'sample')}.{' '}
          {locked.intervalNs > 0 ? chosen(locked) : plain(waitsNote ?? '')}
          {locked.lost > 0 &&
            ` ${plural(locked.lost, 'wait')} of ${duration(locked.lostNs)} lost; shares are without them.`}
          {!wall && ' Locks of java.util.concurrent need wall time: record with -e cpu,wall,lock.'}
        </>
      }
      columns={[
        { head: 'Waits', cell: (row) => (row.waits > 0 ? count(row.waits) : '') },
        { head: 'Longest', cell: (row) => (row.longest > 0 ? duration(row.longest) : '') },
        { head: 'Samples', cell: (row) => count(row.samples) },
        {
          head: 'Mostly held by',
          cell: (row) => owner(store, row.owner, row.ownerNs / (row.ns || 1)),
        },
      ]}
    />
  );
}

/** How waits for monitors were chosen, and how many there were. */
function chosen({ intervalNs, askedNs, waits, blockedNs }: Facts): string {
  const grown = askedNs
    ? ` (threshold at the end; raised from ${duration(askedNs)} by the rate limit)`
    : '';
  return (
    `For monitors, all waits of ${duration(intervalNs)} or longer are recorded, shorter ones at ` +
    `random${grown}. In the full recording: ${plural(waits, 'wait')}, ${duration(blockedNs)} in all.`
  );
}

/** The holder of a class's locks for most of the time that others waited. */
function owner(store: Store, thread: number, share: number): string {
  if (thread < 0) return '';
  const { names, threads } = store.profile;
  const name = names.text(threads.name[thread]!);
  return `${shortened(plain(name), OWNER_MAX)} ${percent(share)}`;
}
