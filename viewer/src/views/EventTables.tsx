// Events of other recorders that are no time of threads: exceptions, sockets, files, old objects.
import { count, duration, plural, size } from '../data/format';
import { plain, shortened } from '../data/plain';
import type { EventTable } from '../data/profile';
import type { Store } from '../state/store';
import { Breakable } from '../ui/Breakable';
import { RowTable, Section } from '../ui/RowTable';

const NAME_MAX = 200;
const TEXTS = { count, bytes: size, ns: duration };

export function EventTables({ store }: { store: Store }) {
  const tables = store.profile.header.eventTables ?? [];
  return (
    <>
      {tables.map((table, at) => (
        <One key={at} table={table} id={`events-${at}`} hasRange={store.during.value !== null} />
      ))}
    </>
  );
}

function One({ table, id, hasRange }: { table: EventTable; id: string; hasRange: boolean }) {
  const { title, note, head, rows, more } = table;
  return (
    <Section id={id} title={title}>
      {hasRange && <p class="of-all">Of the full recording, not of the time range.</p>}
      {note !== '' && <p class="weak">{plain(note)}</p>}
      <RowTable
        label={title}
        columns={[
          {
            head,
            cell: ({ name }) => <Breakable text={shortened(plain(name), NAME_MAX)} />,
          },
          ...table.columns.map(({ head, unit }, place) => ({
            head,
            cell: (row: (typeof rows)[number]) => TEXTS[unit](row.cells[place] ?? 0),
          })),
        ]}
        rows={rows}
        keyOf={(_, at) => at}
        most={rows.length}
      />
      {more > 0 && <p class="weak">and {plural(more, 'more row')}</p>}
    </Section>
  );
}
