// The table of methods, classes, packages or threads. Only the rows in sight exist.
import { type Signal, useComputed, useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { count, percent, plural, type Unit, weight } from '../data/format';
import { plain, shortened } from '../data/plain';
import { csvOf, save } from '../ui/copy';
import { takeFocus } from '../ui/focus';
import { openMenu } from '../ui/FrameMenu';
import type { Store } from '../state/store';
import { nameRoom, ROW_HEIGHT, scrollToRow, selectRow, useScroll, windowOf } from '../ui/rows';
import { type GroupBy, type SortBy, sortRows, topTable, type TopRow } from './top';

const GROUPS: readonly [GroupBy, string][] = [
  ['method', 'Methods'],
  ['class', 'Classes'],
  ['package', 'Packages'],
  ['library', 'Libraries'],
  ['thread', 'Threads'],
];
const HINT = 'Enter or double-click to find in the flame graph';
const HINTS: Partial<Record<GroupBy, string>> = {
  method: `${HINT}, right-click for callers and more`,
  thread: 'Enter or double-click for its flame graph',
};
const COLUMNS: readonly [SortBy, string][] = [
  ['own', 'Self'],
  ['total', 'Total'],
  ['samples', 'Total samples'],
  ['name', 'Name'],
];
const HEAD_HEIGHT = 30;
/** Width of the other columns, as in the style sheet. */
const OTHERS_PX = { narrow: 170, wide: 500 };

interface Sorting {
  by: SortBy;
  descending: boolean;
}

/** What the table shows, and what follows from it. */
function useTable(store: Store) {
  const by = useSignal<GroupBy>('method');
  const sort = useSignal<Sorting>({ by: 'own', descending: true });
  const current = useSignal(0);
  const table = useComputed(() =>
    topTable(store.shown.value, store.keys.value, store.threads.value, by.value),
  );
  const rows = useComputed(() => {
    const { query } = store.parsed.value;
    const found = query ? table.value.rows.filter((row) => query.test(row.name)) : table.value.rows;
    return sortRows(found, sort.value.by, sort.value.descending);
  });
  return { by, sort, current, table, rows };
}

export function TableView({ store }: { store: Store }) {
  const { by, sort, current, table, rows } = useTable(store);
  const box = useRef<HTMLDivElement>(null);
  const scroll = useScroll(box);
  useEffect(() => takeFocus(box.current), []);
  const selected = rows.value[current.value]?.key ?? -1;
  useEffect(() => selectRow(store, selected), [store, selected]);
  const search = (row: TopRow | undefined) => {
    if (!row) return;
    if (row.thread < 0) store.find(row.name);
    else store.go('flame', { threads: { kind: 'one', thread: row.thread } });
  };
  const menu = (row: TopRow | undefined, x: number, y: number) =>
    row !== undefined && openMenu({ store, x, y, key: row.key, node: -1 });
  const onKey = (event: KeyboardEvent) => {
    if (event.target !== event.currentTarget) return;
    const last = rows.value.length - 1;
    const step = stepOf(event.key, last, scroll.height);
    if (event.key === 'Enter') search(rows.value[current.value]);
    else if (event.key === 'ContextMenu' || (event.key === 'F10' && event.shiftKey)) {
      const { left, top } = box.current!.getBoundingClientRect();
      menu(rows.value[current.value], left + HEAD_HEIGHT, top + HEAD_HEIGHT);
    } else if (step !== undefined) {
      current.value = Math.max(0, Math.min(last, current.value + step));
      scrollToRow(box.current!, current.value, HEAD_HEIGHT);
    } else return;
    event.preventDefault();
  };
  const shown = windowOf(rows.value.length, scroll.top, scroll.height);
  const room = nameRoom(scroll, scroll.width < 620 ? OTHERS_PX.narrow : OTHERS_PX.wide);
  return (
    <div class="table-view">
      <LossNote store={store} />
      <Groups by={by} rows={rows.value.length}>
        <button type="button" onClick={() => saveRows(store, rows.value)}>
          CSV
        </button>
      </Groups>
      <div ref={box} class="scroll" tabIndex={0} onKeyDown={onKey} role="region" aria-label="Table">
        <table class="top" aria-rowcount={rows.value.length + 1}>
          <Heads
            sort={sort}
            unit={store.shown.value.header.unit}
            isOfThreads={by.value === 'thread'}
          />
          <tbody>
            <tr aria-hidden="true" style={{ height: `${shown.before}px` }} />
            {rows.value.slice(shown.first, shown.end).map((row, i) => (
              <Row
                key={shown.first + i}
                row={row}
                index={shown.first + i}
                current={current.value === shown.first + i}
                all={table.value.all}
                room={room}
                unit={store.shown.value.header.unit}
                onClick={() => (current.value = shown.first + i)}
                onDblClick={() => search(row)}
                onMenu={(event) => {
                  current.value = shown.first + i;
                  if (menu(row, event.clientX, event.clientY)) event.preventDefault();
                }}
                time={sort.value.by === 'total' ? 'total' : 'own'}
              />
            ))}
            <tr aria-hidden="true" style={{ height: `${shown.after}px` }} />
          </tbody>
        </table>
      </div>
    </div>
  );
}

/** The rows on show as a file. */
function saveRows(store: Store, rows: readonly TopRow[]): void {
  const { unit } = store.shown.value.header;
  const head = ['name', `self (${unit})`, `total (${unit})`, 'samples'];
  const body = rows.map(({ name, own, total, samples }) => [name, own, total, samples]);
  save('table.csv', new Blob([csvOf([head, ...body])], { type: 'text/csv' }));
}

/** How many rows a key goes on; undefined for other keys. */
function stepOf(key: string, last: number, height: number): number | undefined {
  const page = Math.max(1, Math.floor(height / ROW_HEIGHT) - 2);
  const steps: Record<string, number> = {
    ArrowDown: 1,
    ArrowUp: -1,
    PageDown: page,
    PageUp: -page,
    Home: -last,
    End: last,
  };
  return Object.hasOwn(steps, key) ? steps[key] : undefined;
}

/** Above shares of samples, if some samples were lost. */
function LossNote({ store }: { store: Store }) {
  const { lossNote, allocated } = store.profile.header;
  const { time } = store.measure.value;
  const lostObjects = allocated?.lossNote && `Lost: ${allocated.lossNote}`;
  const note = time === 'alloc' ? lostObjects : lossNote;
  if (!note || !(time === 'cpu' || time === 'wall' || time === 'alloc')) return null;
  return (
    <p class="note" role="note">
      {plain(note)}
    </p>
  );
}

function Groups(props: { by: Signal<GroupBy>; rows: number; children: ComponentChildren }) {
  const { by, rows } = props;
  return (
    <div class="group" role="group" aria-label="Rows are">
      {GROUPS.map(([group, label]) => (
        <button
          key={group}
          type="button"
          aria-pressed={by.value === group}
          onClick={() => (by.value = group)}
        >
          {label}
        </button>
      ))}
      {props.children}
      <span class="note">
        {plural(rows, 'row')}; ± is one standard error; {HINTS[by.value] ?? HINT}
      </span>
    </div>
  );
}

function Heads(props: { sort: Signal<Sorting>; unit: Unit; isOfThreads: boolean }) {
  const { sort, unit, isOfThreads } = props;
  // All time of a thread is its own: one column is for both.
  const shown: Sorting =
    isOfThreads && sort.value.by === 'own' ? { ...sort.value, by: 'total' } : sort.value;
  const choose = (column: SortBy) => {
    const { by, descending } = shown;
    // Another column begins with what is most, but names with the first.
    sort.value = { by: column, descending: by === column ? !descending : column !== 'name' };
  };
  return (
    <thead>
      <tr>
        {COLUMNS.filter(([column]) => !isOfThreads || column !== 'own').map(([column, label]) => (
          <Head key={column} label={label} column={column} sort={shown} choose={choose} />
        ))}
        <th scope="col" class="time">
          {shown.by === 'total' ? 'Total' : 'Self'} {unit === 'bytes' ? 'bytes' : 'time'}
        </th>
      </tr>
    </thead>
  );
}

function Head(props: {
  label: string;
  column: SortBy;
  sort: Sorting;
  choose(column: SortBy): void;
}) {
  const active = props.sort.by === props.column;
  const direction = props.sort.descending ? 'descending' : 'ascending';
  return (
    <th scope="col" class={props.column} aria-sort={active ? direction : 'none'}>
      <button type="button" class="quiet" onClick={() => props.choose(props.column)}>
        {props.label}
        <span aria-hidden="true">{active ? (props.sort.descending ? ' ▾' : ' ▴') : ''}</span>
      </button>
    </th>
  );
}

function Row(props: {
  row: TopRow;
  index: number;
  current: boolean;
  all: number;
  /** Characters of the name that fit. */
  room: number;
  unit: Unit;
  onClick(): void;
  onDblClick(): void;
  onMenu(event: MouseEvent): void;
  /** Which of its times is shown. */
  time: 'own' | 'total';
}) {
  const { row, all, unit } = props;
  const share = (value: number, error: number) => (
    <td class="number" title={weight(value, unit)}>
      <span class="bar" style={{ width: `${(value / (all || 1)) * 100}%` }} />
      <span class="value">{percent(value / (all || 1))}</span>
      <span class="error">±{(error * 100).toFixed(1)}</span>
    </td>
  );
  return (
    <tr
      aria-rowindex={props.index + 2}
      aria-current={props.current ? 'true' : undefined}
      onClick={props.onClick}
      onDblClick={props.onDblClick}
      onContextMenu={props.onMenu}
    >
      {row.thread < 0 && share(row.own, row.ownError)}
      {share(row.total, row.totalError)}
      <td class="number">{count(row.samples)}</td>
      <td class="name" title={shortened(row.name, 400)}>
        {shortened(row.name, props.room) || '(unnamed)'}
      </td>
      <td class="number time">{weight(row[props.time], unit)}</td>
    </tr>
  );
}
