// Requests: endpoints with their latencies and what their time went to; the slowest requests of
// one.
import { type Signal, useComputed, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { count, duration, percent } from '../data/format';
import { plain, shortened } from '../data/plain';
import { placesOf } from '../data/places';
import type { Header } from '../data/profile';
import { type EndpointRow, isTimed, slowest, spanOf, splitsOfRequests } from '../data/requests';
import { shortName } from '../data/stacks';
import { causesOf, sum } from '../data/wall';
import { causeColour, causeWords } from '../flame/causes';
import type { Store } from '../state/store';
import { theme } from '../state/theme';
import { slowAgainstUsual } from '../ui/commands';
import { SeenCell, SeenHead, SelfCheckNote } from '../ui/Seen';
import { CauseLegend, inWords, partsOf, SplitBar, Swatch } from '../ui/Split';
import { nameOf, OneRequest } from './OneRequest';
import { Groups } from './Overview';

const ROWS_MAX = 200;
const SLOWEST = 20;
const NAME_MAX = 120;
const WHY_MAX = 6;
/** Of fewer requests none is slower than 95 % of the others. */
const COMPARED_FROM = 20;

type SortBy = 'name' | 'requests' | 'p50' | 'p95' | 'p99' | 'longest' | 'total';

const COLUMNS: readonly [SortBy, string][] = [
  ['name', 'Endpoint'],
  ['requests', 'Requests'],
  ['p50', 'p50'],
  ['p95', 'p95'],
  ['p99', 'p99'],
  ['longest', 'Longest'],
  ['total', 'Total'],
];

export function Requests({ store }: { store: Store }) {
  const { profile } = store;
  const sort = useSignal<SortBy>('p95');
  const rows = store.endpointRows;
  const sorted = useComputed(() => sortedRows(rows.value, sort.value));
  if (rows.value.length === 0) return <None store={store} />;
  const causes = causesOf(profile);
  // The only endpoint needs no choice.
  const [only] = rows.value.length === 1 ? rows.value : [];
  const endpoint = store.measure.value.endpoint ?? (only && only.endpoint !== 0 ? only.name : null);
  return (
    <div class="page requests-view" tabIndex={0}>
      <section aria-labelledby="by-endpoint">
        <h2 id="by-endpoint">
          {profile.header.endpointsNote ? 'Wall time by endpoint' : 'Requests by endpoint'}
        </h2>
        <div class="wide" tabIndex={0} role="group" aria-label="Requests by endpoint">
          <table class={isTimed(profile.header) ? 'rows requests' : 'rows requests untimed'}>
            <Heads sort={sort} header={profile.header} hasRange={store.during.value !== null} />
            <tbody>
              {sorted.value.slice(0, ROWS_MAX).map((row) => (
                <EndpointLine
                  key={row.endpoint}
                  store={store}
                  row={row}
                  causes={causes}
                  isChosen={endpoint === null ? false : row.name === endpoint}
                />
              ))}
            </tbody>
          </table>
        </div>
        {rows.value.length > ROWS_MAX && (
          <p class="weak">and {count(rows.value.length - ROWS_MAX)} more endpoints</p>
        )}
        {profile.header.wall && <CauseLegend causes={seen(rows.value, causes)} />}
        <SelfCheckNote header={profile.header} hasRange={store.during.value !== null} />
      </section>
      {endpoint !== null && <Why store={store} endpoint={endpoint} causes={causes} />}
      <Slowest store={store} causes={causes} />
      <OneRequest store={store} causes={causes} />
    </div>
  );
}

/** Without requests: how to get them, and what is known instead. */
function None({ store }: { store: Store }) {
  return (
    <div class="page requests-view" tabIndex={0}>
      <section aria-labelledby="no-requests">
        <h2 id="no-requests">No request data</h2>
        <p>There are two ways to get endpoints and latencies (docs/context.md):</p>
        <ul>
          <li>
            dwell’s Java API: open a scope around each request, <code>Dwell.scope(…)</code>.
          </li>
          <li>
            OpenTelemetry’s API: call <code>DwellContextStorage.install()</code> before anything
            uses its context.
          </li>
        </ul>
      </section>
      <Groups store={store} />
    </div>
  );
}

function seen(rows: readonly EndpointRow[], causes: readonly string[]): string[] {
  return causes.filter((_, i) => rows.some(({ split }) => (split?.[i] ?? 0) > 0));
}

function sortedRows(rows: readonly EndpointRow[], by: SortBy): EndpointRow[] {
  const list = [...rows];
  if (by === 'name') return list.sort((a, b) => (a.name < b.name ? -1 : 1));
  return list.sort((a, b) => b[by] - a[by]);
}

function Heads(props: { sort: Signal<SortBy>; header: Header; hasRange: boolean }) {
  const { sort, header, hasRange } = props;
  return (
    <thead>
      <tr>
        {COLUMNS.filter(([by]) => by === 'name' || isTimed(header)).map(([by, label]) => (
          <th
            key={by}
            scope="col"
            aria-sort={sort.value === by ? (by === 'name' ? 'ascending' : 'descending') : undefined}
          >
            <button type="button" class="quiet" onClick={() => (sort.value = by)}>
              {label}
              {sort.value === by ? (by === 'name' ? ' ▴' : ' ▾') : ''}
            </button>
          </th>
        ))}
        <SeenHead header={header} hasRange={hasRange} />
        <th scope="col" class="bar-head">
          Where the time goes
        </th>
        {isTimed(header) && (
          <th scope="col" class="text compare-cell">
            Compare
          </th>
        )}
      </tr>
    </thead>
  );
}

function EndpointLine(props: {
  store: Store;
  row: EndpointRow;
  causes: readonly string[];
  isChosen: boolean;
}) {
  const { store, row, causes } = props;
  const choose = () => {
    const { time } = store.measure.value;
    const endpoint = row.endpoint === 0 || props.isChosen ? null : row.name;
    store.measure.value = { time, endpoint };
  };
  return (
    <tr aria-current={props.isChosen ? 'true' : undefined}>
      <th scope="row">
        <button
          type="button"
          class="quiet link"
          aria-pressed={props.isChosen}
          disabled={row.endpoint === 0}
          onClick={choose}
        >
          {shortened(plain(row.name), NAME_MAX)}
        </button>
      </th>
      {isTimed(store.profile.header) && (
        <>
          <td>{count(row.requests)}</td>
          {[row.p50, row.p95, row.p99, row.longest, row.total].map((time, i) => (
            <td key={i}>{row.kept > 0 ? duration(time) : ''}</td>
          ))}
        </>
      )}
      <SeenCell header={store.profile.header} endpoint={row.endpoint === 0 ? null : row.name} />
      <td class="bar-cell">
        {row.split && <SplitBar causes={causes} split={row.split} />}
        <span class="weak">
          {inWords(partsOf(causes, row.split ?? []).slice(0, 2), sum(row.split ?? []))}
        </span>
      </td>
      {isTimed(store.profile.header) && (
        <td class="text compare-cell">
          {row.endpoint !== 0 && row.kept >= COMPARED_FROM && (
            <button
              type="button"
              class="quiet link"
              title="Flame graph of the differences between slow and typical requests"
              onClick={() => slowAgainstUsual(store, row.name)}
            >
              slow vs. typical
            </button>
          )}
        </td>
      )}
    </tr>
  );
}

/** What the time of one endpoint went to, and where. */
function Why(props: { store: Store; endpoint: string; causes: readonly string[] }) {
  const { store, endpoint, causes } = props;
  const { profile } = store;
  const rows = useComputed(() => {
    const row = store.endpointRows.value.find(({ name }) => name === endpoint);
    const parts = partsOf(causes, row?.split ?? []).slice(0, WHY_MAX);
    const filter = { ...store.filter.value, endpoint, request: 0 };
    return parts.map((part) => {
      const [place] = placesOf(profile, filter, causes.indexOf(part.cause));
      return { ...part, all: sum(row?.split ?? []), place };
    });
  });
  // With many endpoints it lies below the part of the page in sight.
  const section = useRef<HTMLElement>(null);
  useEffect(() => section.current?.scrollIntoView({ block: 'nearest' }), [endpoint]);
  const show = (cause: string) => {
    const time = cause === 'running' ? ('cpu' as const) : { cause };
    store.go('flame', { measure: { time, endpoint } });
  };
  return (
    <section ref={section} aria-labelledby="why">
      <h2 id="why">Where {shortened(plain(endpoint), 60)} spends its time</h2>
      <p class="actions">
        <button
          type="button"
          onClick={() => store.go('flame', { measure: { time: 'wall', endpoint } })}
        >
          Flame graph of its time
        </button>
        {isTimed(profile.header) && (
          <button type="button" title="Key x" onClick={() => slowAgainstUsual(store, endpoint)}>
            Slow vs. typical
          </button>
        )}
        <button type="button" onClick={() => store.go('timeline')}>
          Timeline
        </button>
      </p>
      <ul class="why">
        {rows.value.map(({ cause, weight, all, place }) => (
          <li key={cause}>
            <Swatch colour={causeColour(cause, theme.value)} />
            <b>{percent(weight / (all || 1))}</b> {plain(causeWords(cause))}
            {place && <>, mostly in {shortened(shortName(profile, place.node), NAME_MAX)}</>}{' '}
            <button type="button" class="quiet link" onClick={() => show(cause)}>
              stacks
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Slowest({ store, causes }: { store: Store; causes: readonly string[] }) {
  const { profile } = store;
  const { endpoint } = store.measure.value;
  const numbers = useComputed(() =>
    slowest(profile, store.measure.value.endpoint, store.during.value, SLOWEST),
  );
  const splits = useComputed(() => splitsOfRequests(profile, numbers.value));
  if (numbers.value.length === 0) return null;
  return (
    <section aria-labelledby="slowest">
      <h2 id="slowest">
        Slowest requests{endpoint === null ? '' : ` of ${shortened(plain(endpoint), 60)}`}
      </h2>
      <div class="wide" tabIndex={0} role="group" aria-label="Slowest requests">
        <table class="rows slowest">
          <thead>
            <tr>
              <th scope="col">Took</th>
              <th scope="col">At</th>
              {endpoint === null && (
                <th scope="col" class="text">
                  Endpoint
                </th>
              )}
              <th scope="col" class="bar-head">
                Sampled
              </th>
            </tr>
          </thead>
          <tbody>
            {numbers.value.map((number) => {
              const span = spanOf(profile, number)!;
              const split = splits.value.get(number);
              return (
                <tr key={number} aria-current={store.request.value === number ? 'true' : undefined}>
                  <th scope="row">
                    <button
                      type="button"
                      class="quiet link"
                      onClick={() => (store.request.value = number)}
                    >
                      {duration(span.to - span.from)}
                    </button>
                  </th>
                  <td>{duration(span.from)}</td>
                  {endpoint === null && <td class="text">{nameOf(store, number)}</td>}
                  <td class="bar-cell">
                    {split ? (
                      <>
                        <SplitBar causes={causes} split={split} />
                        <span class="weak">
                          {inWords(partsOf(causes, split).slice(0, 2), sum(split))}
                        </span>
                      </>
                    ) : (
                      <span class="weak">not sampled</span>
                    )}
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
