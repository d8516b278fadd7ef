// What is alive at the end, by class; a class leads to the stacks that allocated it.
import { useComputed } from '@preact/signals';
import { aliveRows } from '../data/alive';
import { count, duration, percent, plural, size } from '../data/format';
import { plain, shortened } from '../data/plain';
import { sum } from '../data/wall';
import type { Store } from '../state/store';

const CLASSES_MAX = 15;

export function Alive({ store }: { store: Store }) {
  const { profile } = store;
  const { alive } = profile.header;
  const rows = useComputed(() => aliveRows(profile, store.filter.value));
  if (!alive || !profile.alive) return null;
  const bytes = sum(rows.value.map((row) => row.bytes));
  const young = sum(rows.value.map((row) => row.young));
  const { endpoint } = store.measure.value;
  return (
    <section aria-labelledby="alive">
      <h2 id="alive">Alive at the end, by class</h2>
      <p class="weak">
        {size(bytes)} that survived a collection, in{' '}
        {plural(sum(rows.value.map(({ samples }) => samples)), 'sample')}
        {alive.intervalBytes > 0 && `, one for ${size(alive.intervalBytes)} in the mean`}
        {young > 0 && `; besides, ${size(young)} that no collection has looked at yet`}.
        {alive.oneOf > 1 && ` Of ${count(alive.oneOf)} samples one was followed.`}
        {alive.lost > 0 &&
          ` ${plural(alive.lost, 'sample')} found no room: sums are so much too low.`}
      </p>
      <div class="wide" tabIndex={0} role="group" aria-label="Classes that are alive">
        <table class="rows">
          <thead>
            <tr>
              <th scope="col">Class</th>
              <th scope="col">Bytes</th>
              <th scope="col">Share</th>
              <th scope="col">Objects</th>
              <th scope="col">Oldest</th>
              <th scope="col" title="Of the bytes, by when they were allocated">
                By third of the time
              </th>
              <th scope="col">Not collected yet</th>
            </tr>
          </thead>
          <tbody>
            {rows.value.slice(0, CLASSES_MAX).map((row) => (
              <tr key={row.name}>
                <th scope="row">
                  <button
                    type="button"
                    class="quiet link"
                    onClick={() =>
                      store.go('flame', {
                        measure: { time: 'live', endpoint },
                        query: profile.names.text(row.name),
                      })
                    }
                  >
                    {shortened(plain(profile.names.text(row.name)), 80)}
                  </button>
                </th>
                <td>{size(row.bytes)}</td>
                <td>
                  {percent(row.bytes / (bytes || 1))} ±
                  {((row.error / (bytes || 1)) * 100).toFixed(1)}
                </td>
                <td>{row.objects > 0 ? count(row.objects) : ''}</td>
                <td>{row.oldest > 0 ? duration(row.oldest) : ''}</td>
                <td>
                  {row.bytes > 0 && row.parts.map((part) => percent(part / row.bytes)).join(', ')}
                </td>
                <td>{row.young > 0 ? size(row.young) : ''}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.value.length > CLASSES_MAX && (
        <p class="weak">and {count(rows.value.length - CLASSES_MAX)} more</p>
      )}
    </section>
  );
}
