// The table of differences: methods, classes or packages, those that are more than chance marked.
import { useComputed, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { plural } from '../data/format';
import { shortened } from '../data/plain';
import type { Store } from '../state/store';
import type { Place } from '../table/top';
import { takeFocus } from '../ui/focus';
import { DiffRows } from './DiffRows';
import { diffRows, type DiffSort, type Of, sortDiff } from './rows';
import type { Sides } from './sides';

/** Rows shown; the search finds the others. */
const ROWS_MAX = 500;
const PLACES: readonly [Place, string][] = [
  ['method', 'Methods'],
  ['class', 'Classes'],
  ['package', 'Packages'],
];
const OFS: readonly [Of, string][] = [
  ['own', 'Self'],
  ['total', 'Total'],
];

export function DiffTable({ store, sides }: { store: Store; sides: Sides }) {
  const by = useSignal<Place>('method');
  const of = useSignal<Of>('own');
  const sort = useSignal<DiffSort>('change');
  const onlySure = useSignal(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => takeFocus(box.current), []);
  const all = useComputed(() => {
    const [shown, keys] = [store.shown.value, store.keys.value];
    const now = store.sides.value;
    return now ? diffRows(shown, keys, store.threads.value, now, by.value, of.value) : [];
  });
  const rows = useComputed(() => {
    const { query } = store.parsed.value;
    const found = all.value.filter(
      (row) => (!query || query.test(row.name)) && (!onlySure.value || row.isSignificant),
    );
    return sortDiff(found, sort.value);
  });
  const sure = all.value.filter((row) => row.isSignificant).length;
  const choice = <T,>(value: { value: T }, options: readonly (readonly [T, string])[]) =>
    options.map(([option, label]) => (
      <button
        key={label}
        type="button"
        aria-pressed={value.value === option}
        onClick={() => (value.value = option)}
      >
        {label}
      </button>
    ));
  return (
    <div class="table-view diff-table">
      <div class="group" role="group" aria-label="Rows are">
        {choice(by, PLACES)} {choice(of, OFS)}
        <button
          type="button"
          aria-pressed={onlySure.value}
          onClick={() => (onlySure.value = !onlySure.value)}
        >
          Significant only
        </button>
        <span class="note">
          {sure} of {plural(all.value.length, 'row')} are significant (*); ± is one standard error
        </span>
      </div>
      <div ref={box} class="scroll" tabIndex={0} role="region" aria-label="Table of differences">
        <DiffRows
          store={store}
          sides={sides}
          rows={rows.value.slice(0, ROWS_MAX)}
          sort={sort}
          onName={(row) => {
            if (by.value === 'method' || by.value === 'library') store.query.value = row.name;
            store.view.value = 'flame';
          }}
        />
        {rows.value.length > ROWS_MAX && (
          <p class="weak">
            and {plural(rows.value.length - ROWS_MAX, 'more row')}; a search finds them
          </p>
        )}
        {rows.value.length === 0 && (
          <p class="empty">No row: {shortened(store.query.value, 60) || 'nothing differs'}</p>
        )}
      </div>
    </div>
  );
}
