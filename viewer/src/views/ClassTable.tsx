// A table of classes: each row leads to the stacks behind it.
import type { ComponentChildren } from 'preact';
import type { Time } from '../data/measure';
import { plain, shortened } from '../data/plain';
import { sharesOf, shareText } from '../data/shares';
import type { Store } from '../state/store';
import { Breakable } from '../ui/Breakable';
import { type RowColumn, RowTable, Section } from '../ui/RowTable';

const CLASSES_MAX = 15;
const NAME_MAX = 80;

/** Common part of all rows: a class, by its name's number. */
interface OfClass {
  name: number;
  /** One standard error of what the share is of. */
  error: number;
}

export function ClassTable<R extends OfClass>(props: {
  store: Store;
  id: string;
  title: string;
  /** What a screen reader calls the table. */
  label: string;
  /** The table's class, if it has one. */
  table?: string;
  caption: ComponentChildren;
  rows: readonly R[];
  /** Measure of the flame graph that a class leads to. */
  time: Time;
  /** The heading of the names. */
  head?: string;
  /** The summed value, its heading and its format. */
  sum: { head: string; of(row: R): number; text(value: number): string };
  /** Columns behind the share. */
  columns: readonly RowColumn<R>[];
}) {
  const { store, rows, sum } = props;
  const { names } = store.profile;
  const shares = sharesOf(rows.map((row) => ({ value: sum.of(row), error: row.error })));
  const { endpoint } = store.measure.value;
  const columns: RowColumn<R>[] = [
    {
      head: props.head ?? 'Class',
      cell: ({ name }) => (
        <button
          type="button"
          class="quiet link parted"
          onClick={() =>
            store.go('flame', {
              measure: { time: props.time, endpoint },
              query: names.text(name),
            })
          }
        >
          <Breakable text={shortened(plain(names.text(name)), NAME_MAX)} />
        </button>
      ),
    },
    { head: sum.head, cell: (row) => sum.text(sum.of(row)) },
    { head: 'Share', cell: (_, at) => shareText(shares[at]!) },
    ...props.columns,
  ];
  return (
    <Section id={props.id} title={props.title}>
      <p class="weak">{props.caption}</p>
      <RowTable
        label={props.label}
        {...(props.table === undefined ? {} : { name: props.table })}
        columns={columns}
        rows={rows}
        keyOf={({ name }) => name}
        most={CLASSES_MAX}
        tellsMore
      />
    </Section>
  );
}
