// Safepoints: operations, times to reach them, and last threads.
import { useComputed, useSignal } from '@preact/signals';
import { count, duration, percent, plural } from '../data/format';
import { payersOf, payingThreads } from '../data/payers';
import { plain, shortened } from '../data/plain';
import type { LateReason } from '../data/profile';
import { endpointName } from '../data/requests';
import { shortName } from '../data/stacks';
import { countsOf, culpritsOf, lastFor, longestStops, operationsOf } from '../data/stops';
import { standing, summaryOf } from '../data/stretches';
import { wholeSpan } from '../data/wall';
import type { Store } from '../state/store';
import { around } from '../timeline/time';
import { threadName } from '../tree/keys';
import { Breakable } from '../ui/Breakable';
import { RowTable, Section } from '../ui/RowTable';
import { StackLines } from '../ui/Stack';

const ROWS_MAX = 50;
const NAME_MAX = 100;

export function Safepoints({ store }: { store: Store }) {
  const { stops } = store.profile;
  const told = standing(store.profile);
  const during = store.during.value;
  const [known, counted] = countsOf(store.profile, during);
  return (
    <div class="page stops-view" tabIndex={0}>
      {told.map((stretches) => (
        <p key={stretches.kind.one}>{summaryOf(stretches, during)}</p>
      ))}
      <Operations store={store} />
      {stops.time.length > 0 && (
        <p class="weak">
          {plural(known, 'safepoint')} individually recorded, {count(counted)} only counted.
        </p>
      )}
      <Culprits store={store} />
      <Payers store={store} />
      <PayingThreads store={store} />
      <Longest store={store} />
    </div>
  );
}

function operationName({ profile }: Store, operation: number): string {
  if (operation < 0) return '[counted only]';
  return shortened(plain(profile.names.text(operation)), NAME_MAX) || '[unknown]';
}

function Operations({ store }: { store: Store }) {
  const rows = useComputed(() => operationsOf(store.profile, store.during.value));
  if (rows.value.length === 0) return null;
  return (
    <Section id="operations" title="By operation">
      <RowTable
        label="Operations"
        name="operations"
        rows={rows.value}
        keyOf={({ operation }) => operation}
        most={ROWS_MAX}
        columns={[
          { head: 'Operation', cell: (row) => operationName(store, row.operation) },
          { head: 'Safepoints', cell: (row) => count(row.count) },
          { head: 'Time to safepoint', cell: (row) => duration(row.reaching) },
          { head: 'In safepoint', cell: (row) => duration(row.operating) },
          { head: 'Longest', cell: (row) => (row.longest > 0 ? duration(row.longest) : '') },
        ]}
      />
    </Section>
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
    <Section id="culprits" title="Late threads">
      <p class="actions">
        <button
          type="button"
          disabled={!profile.late.node.some((node) => node !== 0)}
          onClick={() => store.go('flame', { measure: { time: 'late', endpoint } })}
        >
          Flame graph of late threads
        </button>
      </p>
      <div class="beside">
        <RowTable
          label="Late threads"
          name="culprits"
          rows={rows.value}
          keyOf={(_, i) => i}
          most={ROWS_MAX}
          current={at}
          columns={[
            {
              head: 'Thread',
              cell: (row, i) => (
                <button
                  type="button"
                  class="quiet link parted"
                  aria-pressed={i === at}
                  onClick={() => (chosen.value = i)}
                >
                  {shortened(threadName(profile, row.thread), 60)}
                </button>
              ),
            },
            { head: 'Held up', cell: (row) => duration(row.held) },
            { head: 'Times', cell: (row) => count(row.times) },
            {
              head: 'Why',
              isText: true,
              cell: (row) => plain(profile.header.lateReasons[row.reason]?.why ?? ''),
            },
            {
              head: 'In',
              isText: true,
              cell: (row) =>
                row.node > 0 ? shortened(shortName(profile, row.node - 1), NAME_MAX) : '',
            },
          ]}
        />
        <div>
          <h3>Where {shortened(threadName(profile, current.thread), 60)} was</h3>
          <Remedy
            reason={profile.header.lateReasons[current.reason]}
            state={profile.names.text(current.state)}
          />
          <StackLines
            profile={profile}
            node={current.node > 0 ? current.node - 1 : 0}
            label="Stack of the late thread"
          />
        </div>
      </div>
    </Section>
  );
}

/** Why the thread was late, and what to do. */
function Remedy({ reason, state }: { reason: LateReason | undefined; state: string }) {
  if (!reason) return null;
  return (
    <>
      <p class="remedy">
        <strong>{plain(reason.why)}</strong> (it was: {plain(state)}): {plain(reason.remedy)}
      </p>
      {reason.flags !== null && (
        <p class="remedy">
          <Breakable text={plain(reason.flags)} />
        </p>
      )}
    </>
  );
}

/** Requests that were under way at safepoints. */
function Payers({ store }: { store: Store }) {
  const { profile } = store;
  const rows = useComputed(() => payersOf(profile, store.during.value));
  if (rows.value.length === 0) return null;
  return (
    <Section id="payers" title="Requests affected">
      <RowTable
        label="Requests affected"
        name="payers"
        rows={rows.value}
        keyOf={({ endpoint }) => endpoint}
        most={ROWS_MAX}
        columns={[
          {
            head: 'Endpoint',
            cell: (row) => shortened(plain(endpointName(profile, row.endpoint)), NAME_MAX),
          },
          { head: 'Stopped', cell: (row) => duration(row.lost) },
          { head: 'Share of time', cell: (row) => percent(row.lost / Math.max(1, row.total)) },
          {
            head: 'Requests stopped',
            cell: (row) => percent(row.stopped / Math.max(1, row.requests)),
          },
          { head: 'Longest', cell: (row) => duration(row.most) },
        ]}
      />
      <p class="weak">
        Upper bound: a thread that waited for something else would have waited without the
        safepoint, too.
      </p>
    </Section>
  );
}

/** Threads affected, sampled at safepoints, by group. */
function PayingThreads({ store }: { store: Store }) {
  const rows = useComputed(() => {
    const { poolOfThread } = store.keys.value;
    return payingThreads(store.profile, store.filter.value, poolOfThread);
  });
  if (rows.value.length === 0) return null;
  const { first } = store.keys.value.groups('group');
  const nameOf = (key: number) => shortened(store.keys.value.methodName(first + key), NAME_MAX);
  return (
    <Section id="paying-threads" title="Threads affected, sampled at safepoints">
      <RowTable
        label="Threads sampled at safepoints"
        name="paying-threads"
        rows={rows.value}
        keyOf={({ key }) => key}
        most={ROWS_MAX}
        columns={[
          { head: 'Threads', cell: (row) => nameOf(row.key) },
          { head: 'At safepoints', cell: (row) => duration(row.lost) },
          { head: 'Share of time', cell: (row) => percent(row.lost / Math.max(1, row.total)) },
        ]}
      />
    </Section>
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
  const lastOf = (i: number) => {
    const late = lastFor(profile, i + 1);
    return late === undefined ? '' : shortened(threadName(profile, profile.late.thread[late]!), 60);
  };
  return (
    <Section id="longest" title="The longest safepoints">
      <RowTable
        label="The longest safepoints"
        name="stops"
        rows={rows.value}
        keyOf={(i) => i}
        most={ROWS_MAX}
        columns={[
          {
            head: 'At',
            cell: (i) => (
              <button type="button" class="quiet link" onClick={() => show(i)}>
                {duration(stops.time[i]!)}
              </button>
            ),
          },
          {
            head: 'Operation',
            isText: true,
            cell: (i) => operationName(store, stops.operation[i]!),
          },
          { head: 'Time to safepoint', cell: (i) => duration(stops.reaching[i]!) },
          { head: 'In safepoint', cell: (i) => duration(stops.operating[i]!) },
          {
            head: 'Threads (running)',
            cell: (i) => `${count(stops.threads[i]!)} (${count(stops.running[i]!)})`,
          },
          { head: 'Last', isText: true, cell: lastOf },
        ]}
      />
    </Section>
  );
}
