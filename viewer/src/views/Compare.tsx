// Two recordings: their description, the activity of threads in each, and the largest differences.
import { useComputed } from '@preact/signals';
import { count, CPU_TIME, duration, percent, plural } from '../data/format';
import { measured, WHOLE } from '../data/measure';
import { plain, shortened } from '../data/plain';
import type { Compare as Both, LatencyChange, Side } from '../data/profile';
import { NO_ENDPOINT } from '../data/requests';
import { causesOf } from '../data/wall';
import { causeWords } from '../flame/causes';
import { DiffRows } from '../diff/DiffRows';
import { causeRows, diffRows, type DiffRow } from '../diff/rows';
import { sidesOfRecordings } from '../diff/sides';
import { Pers } from '../diff/DiffBar';
import type { Time } from '../data/measure';
import type { Store } from '../state/store';

const ROWS = 12;
const CAUSES = 12;

export function Compare({ store, both }: { store: Store; both: Both }) {
  const what = plain(store.profile.header.measured ?? CPU_TIME);
  return (
    <div class="page compare" tabIndex={0}>
      <section aria-labelledby="compared">
        <h2 id="compared">B compared with A</h2>
        <p class="actions">
          Numbers are <Pers store={store} />
          <button type="button" onClick={() => store.go('flame')}>
            Flame graph of the differences
          </button>
        </p>
        <Files both={both} />
      </section>
      <Latencies rows={both.latencies ?? []} />
      {store.profile.header.wall && <Causes store={store} />}
      <Methods store={store} time="cpu" title={`${what} by method, self`} />
      <p class="weak">
        * is significant: of all rows so marked at most 5 % are chance, on average. That says
        nothing of what else differs from run to run. ± is one standard error of the change.
      </p>
    </div>
  );
}

function Files({ both }: { both: Both }) {
  const [a, b] = both.sides;
  const rows: readonly [string, (side: Side) => string][] = [
    ['File', (side) => shortened(plain(side.name), 80)],
    ['Program', (side) => shortened(plain(side.arguments), 120)],
    ['JVM', (side) => shortened(plain(side.jvm), 80)],
    ['Recorded for', (side) => duration(side.durationNs)],
    ['Mode', (side) => plain(side.mode)],
    ['Samples', (side) => count(side.samples)],
    ['CPU time sampled', (side) => (side.cpuNs > 0 ? duration(side.cpuNs) : '')],
    ['Requests', (side) => (side.requests > 0 ? count(side.requests) : '')],
    ['The file', (side) => plain(side.unread ?? '')],
    ['Stacks that failed', (side) => percent(side.failed)],
  ];
  return (
    <div class="wide" tabIndex={0} role="group" aria-label="The two recordings">
      <table class="rows files">
        <thead>
          <tr>
            <td />
            <th scope="col" class="text">
              A
            </th>
            <th scope="col" class="text">
              B
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([label, of]) =>
            of(a) + of(b) === '' ? null : (
              <tr key={label}>
                <th scope="row" class="text">
                  {label}
                </th>
                <td class="text">{of(a)}</td>
                <td class="text">{of(b)}</td>
              </tr>
            ),
          )}
        </tbody>
      </table>
    </div>
  );
}

/** How long requests took, and what changed. */
function Latencies({ rows }: { rows: readonly LatencyChange[] }) {
  if (rows.length === 0) return null;
  return (
    <section aria-labelledby="latencies">
      <h2 id="latencies">Latencies by endpoint</h2>
      <div class="wide" tabIndex={0} role="group" aria-label="Latencies by endpoint">
        <table class="rows latencies">
          <thead>
            <tr>
              {['Endpoint', '', 'A', 'B', 'Change', '95 % interval'].map((head, i) => (
                <th key={i} scope="col" class={i === 0 ? 'text' : ''}>
                  {head || 'Measure'}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>{rows.slice(0, ROWS).flatMap((row, i) => latencyLines(row, i))}</tbody>
        </table>
      </div>
      {rows.length > ROWS && <p class="weak">and {plural(rows.length - ROWS, 'more endpoint')}</p>}
    </section>
  );
}

function latencyLines({ endpoint, perSecond, percentiles }: LatencyChange, i: number) {
  const [a, b] = perSecond;
  const name = shortened(plain(endpoint ?? NO_ENDPOINT), 80);
  return [
    <tr key={`${i} rate`}>
      <th scope="rowgroup" rowSpan={1 + percentiles.length} class="text">
        {name}
      </th>
      <td>requests per second</td>
      <td>{a.toFixed(1)}</td>
      <td>{b.toFixed(1)}</td>
      <td>{signedPercent(a, b)}</td>
      <td />
    </tr>,
    ...percentiles.map(({ percent: of, a, b, change }) => (
      <tr key={`${i} ${of}`}>
        <td>p{of}</td>
        <td>{duration(a)}</td>
        <td>{duration(b)}</td>
        <td>
          {change ? signedTime(change.ns) : ''}
          {change?.significant ? ' *' : ''}
        </td>
        <td>
          {change ? `${signedTime(change.low)} to ${signedTime(change.high)}` : 'too few requests'}
        </td>
      </tr>
    )),
  ];
}

function signedTime(ns: number): string {
  const sign = ns > 0 ? '+' : ns < 0 ? '−' : '';
  return sign + duration(Math.abs(ns));
}

function signedPercent(a: number, b: number): string {
  if (a <= 0) return '';
  const change = b / a - 1;
  return (change > 0 ? '+' : change < 0 ? '−' : '') + percent(Math.abs(change));
}

/** The sides of another time than the one that is shown elsewhere. */
function sidesOf(store: Store, time: Time) {
  const { compare } = store.profile.header;
  const { endpoint } = store.measure.value;
  const part = { ...WHOLE, idle: store.idle.value };
  const shown = measured(store.profile, { time, endpoint }, part);
  const per = store.per.value ?? compare!.per;
  return { shown, sides: sidesOfRecordings(shown, store.threads.value, per, endpoint) };
}

function Causes({ store }: { store: Store }) {
  const found = useComputed(() => {
    const { shown, sides } = sidesOf(store, 'wall');
    if (!sides) return null;
    const names = causesOf(store.profile);
    return { sides, rows: causeRows(shown, store.threads.value, sides, names) };
  });
  if (!found.value) return <Nothing what="wall time" />;
  const { sides, rows } = found.value;
  const show = ({ cause }: { cause: string }) => {
    const { endpoint } = store.measure.value;
    const time: Time = cause === 'running' ? 'cpu' : { cause };
    store.go('flame', { measure: { time, endpoint } });
  };
  const named = rows.slice(0, CAUSES).map((row) => ({ ...row, cause: row.name }));
  const told = named.map((row) => ({ ...row, name: causeWords(row.name) }));
  return (
    <section aria-labelledby="by-cause">
      <h2 id="by-cause">Wall time by cause</h2>
      <div class="wide" tabIndex={0} role="group" aria-label="Wall time by cause">
        <DiffRows
          store={store}
          sides={sides}
          rows={told}
          onName={(row) => show(row as DiffRow & { cause: string })}
        />
      </div>
    </section>
  );
}

function Methods({ store, time, title }: { store: Store; time: Time; title: string }) {
  const found = useComputed(() => {
    const { shown, sides } = sidesOf(store, time);
    if (!sides) return null;
    const rows = diffRows(shown, store.keys.value, store.threads.value, sides, 'method', 'own');
    // What is more than chance first.
    const sure = rows.filter((row) => row.isSignificant);
    return {
      sides,
      rows: [...sure, ...rows.filter((row) => !row.isSignificant)],
      sure: sure.length,
    };
  });
  if (!found.value) return <Nothing what="CPU time" />;
  const { sides, rows, sure } = found.value;
  const show = (row: DiffRow) => store.go('flame', { query: row.name });
  return (
    <section aria-labelledby="by-method">
      <h2 id="by-method">{title}</h2>
      <p class="weak">
        {sure} of {count(rows.length)} methods differ significantly.
      </p>
      <div class="wide" tabIndex={0} role="group" aria-label={title}>
        <DiffRows store={store} sides={sides} rows={rows.slice(0, ROWS)} onName={show} />
      </div>
      <p class="actions">
        <button type="button" onClick={() => store.go('table')}>
          All methods
        </button>
      </p>
    </section>
  );
}

function Nothing({ what }: { what: string }) {
  return <p class="weak">One of the recordings has no {what} for these filters and this scale.</p>;
}
