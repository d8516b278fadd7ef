// Rows of differences as a table: both sides, the change, how uncertain it is.
import type { Signal } from '@preact/signals';
import { plain, shortened } from '../data/plain';
import type { Store } from '../state/store';
import { contrastful, theme } from '../state/theme';
import { diffColours, stepOf } from './colours';
import type { DiffRow, DiffSort } from './rows';
import type { Sides } from './sides';
import { certainty, rate, relative, signedRate } from './words';

const NAME_MAX = 140;

export function DiffRows(props: {
  store: Store;
  sides: Sides;
  rows: readonly DiffRow[];
  /** Sort order of the rows; missing: they cannot be sorted. */
  sort?: Signal<DiffSort>;
  onName?(row: DiffRow): void;
}) {
  const { store, sides, rows, sort, onName } = props;
  const { unit } = store.shown.value.header;
  const { per } = sides.base;
  const colours = diffColours(theme.value, contrastful.value);
  const columns: readonly [DiffSort, string][] = [
    ['a', sides.names[0]],
    ['b', sides.names[1]],
    ['change', 'Change'],
    ['z', '±'],
    ['name', 'Name'],
  ];
  const fill = (row: DiffRow) => {
    const step = stepOf(row.a, row.b, row.isSignificant);
    const paint =
      step === 0 ? colours.none : (step > 0 ? colours.more : colours.less)[Math.abs(step) - 1];
    return paint?.fill ?? colours.none.fill;
  };
  return (
    <table class="rows diff-rows">
      <thead>
        <tr>
          {columns.map(([by, label]) => (
            <th
              key={by}
              scope="col"
              class={by === 'name' ? 'text' : undefined}
              aria-sort={
                sort?.value === by ? (by === 'name' ? 'ascending' : 'descending') : undefined
              }
            >
              {sort ? (
                <button
                  type="button"
                  class="quiet"
                  title={
                    by === 'z' ? 'Standard error; sorts by significance of the change' : undefined
                  }
                  onClick={() => (sort.value = by)}
                >
                  {label}
                  {sort.value === by ? (by === 'name' ? ' ▴' : ' ▾') : ''}
                </button>
              ) : (
                label
              )}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.name} title={certainty(row, row.isSignificant)}>
            <td class="number">{rate(row.a, per, unit)}</td>
            <td class="number">{rate(row.b, per, unit)}</td>
            <td class="number">
              <span class="swatch" style={{ background: fill(row) }} />{' '}
              <b>{signedRate(row.b - row.a, per, unit)}</b>
              {row.isSignificant ? ' *' : ''} <span class="weak">{relative(row)}</span>
            </td>
            <td class="number weak">{rate(row.error, per, unit)}</td>
            <th scope="row" class="text">
              {onName ? (
                <button type="button" class="quiet link" onClick={() => onName(row)}>
                  {shortened(plain(row.name), NAME_MAX) || '(unnamed)'}
                </button>
              ) : (
                shortened(plain(row.name), NAME_MAX) || '(unnamed)'
              )}
            </th>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
