// What was allocated, by class; a class leads to the stacks that did it.
import { useComputed } from '@preact/signals';
import { classRows } from '../data/allocations';
import { count, plural, size } from '../data/format';
import { plain } from '../data/plain';
import type { Allocated as Facts } from '../data/profile';
import { sum } from '../data/wall';
import type { Store } from '../state/store';
import { ClassTable } from './ClassTable';

export function Allocated({ store }: { store: Store }) {
  const { profile } = store;
  const { allocated } = profile.header;
  const rows = useComputed(() => classRows(profile, store.filter.value));
  if (!allocated || !profile.allocations) return null;
  return (
    <ClassTable
      store={store}
      id="allocated"
      title="Allocated, by class"
      label="Classes"
      rows={rows.value}
      time="alloc"
      sum={{ head: 'Bytes', of: ({ bytes }) => bytes, text: size }}
      caption={
        <>
          {size(sum(rows.value.map(({ bytes }) => bytes)))} in{' '}
          {plural(sum(rows.value.map(({ samples }) => samples)), 'sample')}
          {interval(allocated)}.{allocated.lossNote && ` Lost: ${plain(allocated.lossNote)}.`}
        </>
      }
      columns={[
        { head: 'Objects', cell: (row) => (row.objects > 0 ? count(row.objects) : '') },
        { head: 'Samples', cell: (row) => count(row.samples) },
      ]}
    />
  );
}

/** How far samples are from each other. */
function interval({ intervalBytes, rate, askedBytes }: Facts): string {
  if (intervalBytes === 0) return '';
  const bytes = size(intervalBytes);
  if (askedBytes) {
    return `, interval raised from ${size(askedBytes)} to ${bytes} (rate limit)`;
  }
  if (rate === 0) return `, mean interval ${bytes}`;
  return `, about ${count(rate)} per second (interval ${bytes} at the end)`;
}
