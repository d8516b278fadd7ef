// What is alive at the end, by class; a class leads to the stacks that allocated it.
import { useComputed } from '@preact/signals';
import { aliveRows } from '../data/alive';
import { count, duration, percent, plural, size } from '../data/format';
import { sum } from '../data/wall';
import type { Store } from '../state/store';
import { ClassTable } from './ClassTable';

export function Alive({ store }: { store: Store }) {
  const { profile } = store;
  const { alive } = profile.header;
  const rows = useComputed(() => aliveRows(profile, store.filter.value));
  if (!alive || !profile.alive) return null;
  const young = sum(rows.value.map((row) => row.young));
  return (
    <ClassTable
      store={store}
      id="alive"
      title="Alive at the end, by class"
      label="Classes of live objects"
      rows={rows.value}
      time="live"
      sum={{ head: 'Bytes', of: ({ bytes }) => bytes, text: size }}
      caption={
        <>
          {size(sum(rows.value.map(({ bytes }) => bytes)))} that survived a collection, in{' '}
          {plural(sum(rows.value.map(({ samples }) => samples)), 'sample')}
          {alive.intervalBytes > 0 && `, interval raised to ${size(alive.intervalBytes)}`}
          {young > 0 && `; plus ${size(young)} not yet seen by a GC`}.
          {alive.oneOf > 1 && ` One of ${count(alive.oneOf)} samples was followed.`}
          {alive.lost > 0 &&
            ` ${plural(alive.lost, 'sample')} lost (buffer full): sums are too low by that part.`}
        </>
      }
      columns={[
        { head: 'Objects', cell: (row) => (row.objects > 0 ? count(row.objects) : '') },
        { head: 'Oldest', cell: (row) => (row.oldest > 0 ? duration(row.oldest) : '') },
        {
          head: 'Allocated in 1st / 2nd / 3rd third',
          title: 'Bytes by time of allocation',
          cell: ({ bytes, parts }) =>
            bytes > 0 && parts.map((part) => percent(part / bytes)).join(', '),
        },
        { head: 'Not collected yet', cell: (row) => (row.young > 0 ? size(row.young) : '') },
      ]}
    />
  );
}
