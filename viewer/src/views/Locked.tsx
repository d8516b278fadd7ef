// Time in locks, by the lock's class; a class leads to the stacks that waited.
import { useComputed } from '@preact/signals';
import { count, duration, percent, plural } from '../data/format';
import { lockRows } from '../data/locked';
import { plain, shortened } from '../data/plain';
import { sum } from '../data/wall';
import type { Store } from '../state/store';

const LOCKS_MAX = 15;
const NAME_MAX = 80;
const OWNER_MAX = 40;

export function Locked({ store }: { store: Store }) {
  const { profile } = store;
  const { locked, wall, compare } = profile.header;
  const rows = useComputed(() => lockRows(profile, store.filter.value));
  if (!locked || !profile.locks || compare) return null;
  const all = sum(rows.value.map(({ ns }) => ns)) || 1;
  const { endpoint } = store.measure.value;
  return (
    <section aria-labelledby="locked">
      <h2 id="locked">Blocked by locks, by class</h2>
      <p class="weak">
        {duration(sum(rows.value.map(({ ns }) => ns)))} in{' '}
        {plural(sum(rows.value.map(({ samples }) => samples)), 'sample')}. Of monitors all waits of{' '}
        {duration(locked.intervalNs)} or longer are recorded, shorter ones by chance; in the whole
        recording there were {plural(locked.waits, 'wait')} of {duration(locked.blockedNs)}.
        {locked.lost > 0 && ` ${plural(locked.lost, 'wait')} of ${duration(locked.lostNs)} lost.`}
        {!wall && ' Locks of java.util.concurrent need wall time: record with -e cpu,wall,lock.'}
      </p>
      <div class="wide" tabIndex={0} role="group" aria-label="Locks">
        <table class="rows locked">
          <thead>
            <tr>
              <th scope="col">Class of the lock</th>
              <th scope="col">Blocked</th>
              <th scope="col">Share</th>
              <th scope="col">Waits</th>
              <th scope="col">Longest</th>
              <th scope="col">Samples</th>
              <th scope="col">Had most by</th>
            </tr>
          </thead>
          <tbody>
            {rows.value.slice(0, LOCKS_MAX).map((row) => (
              <tr key={row.name}>
                <th scope="row">
                  <button
                    type="button"
                    class="quiet link"
                    onClick={() =>
                      store.go('flame', {
                        measure: { time: 'locks', endpoint },
                        query: profile.names.text(row.name),
                      })
                    }
                  >
                    {shortened(plain(profile.names.text(row.name)), NAME_MAX)}
                  </button>
                </th>
                <td>{duration(row.ns)}</td>
                <td>
                  {percent(row.ns / all)} ±{((row.error / all) * 100).toFixed(1)}
                </td>
                <td>{row.waits > 0 ? count(row.waits) : ''}</td>
                <td>{row.longest > 0 ? duration(row.longest) : ''}</td>
                <td>{count(row.samples)}</td>
                <td>{owner(store, row.owner, row.ownerNs / (row.ns || 1))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.value.length > LOCKS_MAX && (
        <p class="weak">and {count(rows.value.length - LOCKS_MAX)} more</p>
      )}
    </section>
  );
}

/** Who had locks of a class most of the time that others waited. */
function owner(store: Store, thread: number, share: number): string {
  if (thread < 0) return '';
  const { names, threads } = store.profile;
  const name = names.text(threads.name[thread]!);
  return `${shortened(plain(name), OWNER_MAX)} ${percent(share)}`;
}
