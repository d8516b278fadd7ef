// Safepoints: what the JVM stopped everything for, how long until all had stopped, and who came
// last.
import { useComputed, useSignal } from '@preact/signals';
import { count, duration, percent, plural } from '../data/format';
import { payersOf, payingThreads } from '../data/payers';
import { plain, shortened } from '../data/plain';
import { endpointName } from '../data/requests';
import { shortName } from '../data/stacks';
import { culpritsOf, lastFor, longestStops, operationsOf } from '../data/stops';
import { sum, wholeSpan } from '../data/wall';
import type { Store } from '../state/store';
import { around } from '../timeline/time';
import { threadName } from '../tree/keys';
import { StackLines } from '../ui/Stack';

const ROWS_MAX = 50;
const NAME_MAX = 100;

export function Safepoints({ store }: { store: Store }) {
  const { stops, pauses } = store.profile;
  const counted = sum(stops.count.filter((_, i) => stops.known[i] !== 1));
  if (stops.time.length === 0 && pauses.time.length === 0) {
    return (
      <div class="page" tabIndex={0}>
        <p class="empty">No safepoint and no pause for a collection is in this recording.</p>
      </div>
    );
  }
  return (
    <div class="page stops-view" tabIndex={0}>
      <Pauses store={store} />
      <Operations store={store} />
      {stops.time.length > 0 && (
        <p class="weak">
          {plural(sum(stops.count) - counted, 'safepoint')} read one by one from the JVM’s own
          notes, {count(counted)} from its counters only.
        </p>
      )}
      <Culprits store={store} />
      <Payers store={store} />
      <PayingThreads store={store} />
      <Longest store={store} />
    </div>
  );
}

function Pauses({ store }: { store: Store }) {
  const { duration: lengths } = store.profile.pauses;
  if (lengths.length === 0) return null;
  const longest = lengths.reduce((a, b) => Math.max(a, b), 0);
  return (
    <p>
      {plural(lengths.length, 'pause')} for collections, {duration(sum(lengths))} in all, the
      longest {duration(longest)}.
    </p>
  );
}

function operationName({ profile }: Store, operation: number): string {
  return shortened(plain(profile.names.text(operation)), NAME_MAX) || '(not known)';
}

function Operations({ store }: { store: Store }) {
  const rows = useComputed(() => operationsOf(store.profile, store.during.value));
  if (rows.value.length === 0) return null;
  return (
    <section aria-labelledby="operations">
      <h2 id="operations">What everything stopped for</h2>
      <div class="wide" tabIndex={0} role="group" aria-label="Operations">
        <table class="rows operations">
          <thead>
            <tr>
              {['Operation', 'Safepoints', 'Reaching them', 'At them', 'Longest'].map((name) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.value.slice(0, ROWS_MAX).map((row) => (
              <tr key={row.operation}>
                <th scope="row">{operationName(store, row.operation)}</th>
                <td>{count(row.count)}</td>
                <td>{duration(row.reaching)}</td>
                <td>{duration(row.operating)}</td>
                <td>{row.longest > 0 ? duration(row.longest) : ''}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Culprits({ store }: { store: Store }) {
  const { profile } = store;
  const rows = useComputed(() => culpritsOf(profile, store.during.value, ROWS_MAX));
  const chosen = useSignal(0);
  if (rows.value.length === 0) return null;
  const at = Math.min(chosen.value, rows.value.length - 1);
  const current = rows.value[at]!;
  const { endpoint } = store.measure.value;
  return (
    <section aria-labelledby="culprits">
      <h2 id="culprits">Who the others waited for</h2>
      <p class="actions">
        <button
          type="button"
          disabled={!profile.late.node.some((node) => node !== 0)}
          onClick={() => store.go('flame', { measure: { time: 'late', endpoint } })}
        >
          Flame graph, by the time they held all others up
        </button>
      </p>
      <div class="beside">
        <div class="wide" tabIndex={0} role="group" aria-label="Late threads">
          <table class="rows culprits">
            <thead>
              <tr>
                <th scope="col">Thread</th>
                <th scope="col">Held up</th>
                <th scope="col">Times</th>
                <th scope="col" class="text">
                  It was
                </th>
                <th scope="col" class="text">
                  In
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.value.map((row, i) => (
                <tr key={i} aria-current={i === at ? 'true' : undefined}>
                  <th scope="row">
                    <button
                      type="button"
                      class="quiet link"
                      aria-pressed={i === at}
                      onClick={() => (chosen.value = i)}
                    >
                      {shortened(threadName(profile, row.thread), 60)}
                    </button>
                  </th>
                  <td>{duration(row.held)}</td>
                  <td>{count(row.times)}</td>
                  <td class="text">{plain(profile.names.text(row.state))}</td>
                  <td class="text">
                    {row.node > 0 ? shortened(shortName(profile, row.node - 1), NAME_MAX) : ''}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        <div>
          <h3>Where {shortened(threadName(profile, current.thread), 60)} was</h3>
          <StackLines
            profile={profile}
            node={current.node > 0 ? current.node - 1 : 0}
            label="Stack of the late thread"
          />
        </div>
      </div>
    </section>
  );
}

/** Requests that were under way at safepoints. */
function Payers({ store }: { store: Store }) {
  const { profile } = store;
  const rows = useComputed(() => payersOf(profile, store.during.value));
  if (rows.value.length === 0) return null;
  return (
    <section aria-labelledby="payers">
      <h2 id="payers">Whose requests stood still</h2>
      <div class="wide" tabIndex={0} role="group" aria-label="Requests that stood still">
        <table class="rows payers">
          <thead>
            <tr>
              {['Endpoint', 'Stood still', 'Of their time', 'Of the requests', 'At most'].map(
                (name) => (
                  <th key={name} scope="col">
                    {name}
                  </th>
                ),
              )}
            </tr>
          </thead>
          <tbody>
            {rows.value.slice(0, ROWS_MAX).map((row) => (
              <tr key={row.endpoint}>
                <th scope="row">
                  {shortened(plain(endpointName(profile, row.endpoint)), NAME_MAX)}
                </th>
                <td>{duration(row.lost)}</td>
                <td>{percent(row.lost / Math.max(1, row.total))}</td>
                <td>{percent(row.stopped / Math.max(1, row.requests))}</td>
                <td>{duration(row.most)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="weak">
        The most that safepoints can have taken: what waited for something else meanwhile would have
        waited anyhow.
      </p>
    </section>
  );
}

/** Threads that were seen at safepoints, by group. */
function PayingThreads({ store }: { store: Store }) {
  const rows = useComputed(() => {
    const { poolOfThread } = store.keys.value;
    return payingThreads(store.profile, store.filter.value, poolOfThread);
  });
  if (rows.value.length === 0) return null;
  const { first } = store.keys.value.groups('group');
  return (
    <section aria-labelledby="paying-threads">
      <h2 id="paying-threads">Threads that were seen at safepoints</h2>
      <div class="wide" tabIndex={0} role="group" aria-label="Threads seen at safepoints">
        <table class="rows paying-threads">
          <thead>
            <tr>
              {['Threads', 'At safepoints', 'Of their time'].map((name) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.value.slice(0, ROWS_MAX).map((row) => (
              <tr key={row.key}>
                <th scope="row">
                  {shortened(store.keys.value.methodName(first + row.key), NAME_MAX)}
                </th>
                <td>{duration(row.lost)}</td>
                <td>{percent(row.lost / Math.max(1, row.total))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Longest({ store }: { store: Store }) {
  const { profile } = store;
  const { stops } = profile;
  const rows = useComputed(() => longestStops(profile, store.during.value, ROWS_MAX));
  if (rows.value.length === 0) return null;
  const show = (i: number) => {
    const from = stops.time[i]!;
    const to = from + Math.max(1e6, stops.reaching[i]! + stops.operating[i]!);
    store.go('timeline', { sight: around({ from, to }, 2, wholeSpan(profile)) });
  };
  return (
    <section aria-labelledby="longest">
      <h2 id="longest">The longest safepoints</h2>
      <div class="wide" tabIndex={0} role="group" aria-label="The longest safepoints">
        <table class="rows stops">
          <thead>
            <tr>
              <th scope="col">At</th>
              <th scope="col" class="text">
                Operation
              </th>
              <th scope="col">Reaching it</th>
              <th scope="col">At it</th>
              <th scope="col">Threads (running)</th>
              <th scope="col" class="text">
                Last
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.value.map((i) => {
              const late = lastFor(profile, i + 1);
              return (
                <tr key={i}>
                  <th scope="row">
                    <button type="button" class="quiet link" onClick={() => show(i)}>
                      {duration(stops.time[i]!)}
                    </button>
                  </th>
                  <td class="text">{operationName(store, stops.operation[i]!)}</td>
                  <td>{duration(stops.reaching[i]!)}</td>
                  <td>{duration(stops.operating[i]!)}</td>
                  <td>
                    {count(stops.threads[i]!)} ({count(stops.running[i]!)})
                  </td>
                  <td class="text">
                    {late === undefined
                      ? ''
                      : shortened(threadName(profile, profile.late.thread[late]!), 60)}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}
