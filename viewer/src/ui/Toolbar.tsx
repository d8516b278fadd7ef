// Views, switches, threads and search.
import type { ComponentChildren } from 'preact';
import { percent } from '../data/format';
import { type Measure, textOf, type Time } from '../data/measure';
import { plain, shortened } from '../data/plain';
import type { View } from '../state/fragment';
import type { Store } from '../state/store';
import { theme, toggleTheme } from '../state/theme';
import { TIME_ID, toggleDialog } from './commands';
import { SearchBox } from './SearchBox';

const VIEWS: readonly [View, string, string][] = [
  ['flame', 'Flame graph', ''],
  ['table', 'Table', 't'],
  ['tree', 'Call tree', 'c'],
];
/** More threads than this are not offered one by one. */
const THREADS_MAX = 500;

export function Toolbar({ store }: { store: Store }) {
  return (
    <div class="toolbar" role="toolbar" aria-label="View">
      <div class="group">
        {VIEWS.map(([view, label, key]) => (
          <Toggle
            key={view}
            on={store.view.value === view}
            hint={key}
            onClick={() => (store.view.value = view)}
          >
            {label}
          </Toggle>
        ))}
      </div>
      <div class="group">
        <Switch value={store.reversed} hint="r">
          Callers
        </Switch>
        <Switch value={store.split} hint="s">
          By thread
        </Switch>
        <Switch value={store.byLine} hint="l">
          Lines
        </Switch>
        <Switch value={store.icicle} hint="i">
          Icicle
        </Switch>
      </div>
      <Measures store={store} />
      <Threads store={store} />
      <SearchBox store={store} />
      <div class="group">
        <button type="button" title="Zoom all the way out (0)" onClick={() => store.resetZoom()}>
          Reset
        </button>
        <Toggle on={theme.value === 'dark'} hint="d" onClick={toggleTheme}>
          Dark
        </Toggle>
        <button type="button" title="Keys (?)" onClick={() => toggleDialog('help')}>
          Help
        </button>
      </div>
    </div>
  );
}

function Toggle(props: {
  on: boolean;
  hint: string;
  onClick(): void;
  children: ComponentChildren;
}) {
  return (
    <button
      type="button"
      aria-pressed={props.on}
      title={props.hint ? `Key ${props.hint}` : undefined}
      onClick={props.onClick}
    >
      {props.children}
    </button>
  );
}

function Switch(props: { value: { value: boolean }; hint: string; children: ComponentChildren }) {
  const { value } = props;
  return (
    <Toggle on={value.value} hint={props.hint} onClick={() => (value.value = !value.value)}>
      {props.children}
    </Toggle>
  );
}

const TIMES: readonly [Time, string][] = [
  ['cpu', 'CPU time'],
  ['wall', 'Wall time'],
  ['off', 'Waiting'],
];

/** CPU or wall time, by cause; of all endpoints or one. Not there if there is nothing to choose. */
function Measures({ store }: { store: Store }) {
  const { wall, waits, endpoints } = store.profile.header;
  const { time, endpoint } = store.measure.value;
  const choose = (change: Partial<Measure>) => {
    store.measure.value = { ...store.measure.value, ...change };
  };
  const causes = (wall?.causes ?? []).filter(({ cause }) => waits.includes(cause));
  // Names of the program are text only: a choice is known by its number.
  const times = [...TIMES.map(([time]) => time), ...causes.map(({ cause }) => ({ cause }))];
  const chosen = times.findIndex((known) => textOf(known) === textOf(time));
  return (
    <>
      {wall && (
        <select
          id={TIME_ID}
          aria-label="Time"
          value={chosen}
          onChange={(event) => choose({ time: times[Number(event.currentTarget.value)] ?? 'cpu' })}
        >
          {TIMES.map(([, label], i) => (
            <option key={i} value={i}>
              {label}
            </option>
          ))}
          <optgroup label="Waiting for">
            {causes.map(({ cause, ns }, i) => (
              <option key={i} value={TIMES.length + i}>
                {percent(ns / wall.ns)} {shortened(plain(cause), 40)}
              </option>
            ))}
          </optgroup>
        </select>
      )}
      {endpoints.length > 0 && (
        <select
          aria-label="Endpoint"
          value={endpoint === null ? -1 : endpoints.indexOf(endpoint)}
          onChange={(event) =>
            choose({ endpoint: endpoints[Number(event.currentTarget.value)] ?? null })
          }
        >
          <option value={-1}>All endpoints</option>
          {endpoints.slice(0, THREADS_MAX).map((name, i) => (
            <option key={i} value={i}>
              {shortened(plain(name), 60)}
            </option>
          ))}
        </select>
      )}
    </>
  );
}

function Threads({ store }: { store: Store }) {
  const { threads, pools } = store.threadRows.value;
  const all = threads.reduce((sum, row) => sum + row.weight, 0) || 1;
  const choice = store.choice.value;
  const value =
    choice.kind === 'all' ? '' : choice.kind === 'one' ? `t${choice.thread}` : `p${choice.pool}`;
  const choose = (text: string) => {
    const rest = text.slice(1);
    store.choice.value =
      text === ''
        ? { kind: 'all' }
        : text.startsWith('t')
          ? { kind: 'one', thread: Number(rest) }
          : { kind: 'pool', pool: rest };
  };
  const label = (name: string, weight: number) =>
    `${percent(weight / all)}  ${shortened(name, 60)}`;
  return (
    <select
      aria-label="Threads"
      value={value}
      onChange={(event) => choose(event.currentTarget.value)}
    >
      <option value="">All threads ({threads.length})</option>
      {pools.length > 0 && (
        <optgroup label="Pools">
          {pools.map((row) => (
            <option key={row.pool} value={`p${row.pool}`}>
              {label(`${row.pool} (${row.threads})`, row.weight)}
            </option>
          ))}
        </optgroup>
      )}
      <optgroup label="Threads">
        {threads.slice(0, THREADS_MAX).map((row) => (
          <option key={row.thread} value={`t${row.thread}`}>
            {label(row.name, row.weight)}
          </option>
        ))}
      </optgroup>
    </select>
  );
}
