// What is compared with what, above the graph, the table and the tree: normalisation and widths.
import { duration, plural } from '../data/format';
import { plain, shortened } from '../data/plain';
import type { Span } from '../data/profile';
import type { Store } from '../state/store';
import type { Width } from './build';
import type { Ranges } from './sides';
import type { Per } from './statistics';
import { PER_WORDS, sentence } from './words';

export function DiffBar({ store }: { store: Store }) {
  const { versus } = store;
  const sides = store.sides.value;
  const { compare } = store.profile.header;
  const { endpoint } = store.measure.value;
  const { ranges } = store;
  if (!versus.value && !compare && !ranges.value) return null;
  const stop = (
    <button type="button" title="Key x" onClick={() => store.stopComparing()}>
      Stop comparing
    </button>
  );
  if (!sides) {
    return (
      <div class="diff-bar" role="group" aria-label="Comparison">
        <span>
          {compare
            ? 'One of the recordings has no data for these filters.'
            : 'Choose an endpoint with more requests: slow ones are compared with typical ones.'}
        </span>
        {compare ? <Pers store={store} /> : stop}
      </div>
    );
  }
  return (
    <div class="diff-bar" role="group" aria-label="Comparison">
      <span class="diff-told">
        {sides.of === 'requests' && endpoint !== null && (
          <b>{shortened(plain(endpoint), 60)}, slow vs. typical: </b>
        )}
        {ranges.value && <b>{rangeWords(ranges.value)}: </b>}
        {sentence(sides)} {found(store)}
      </span>
      {compare && <Pers store={store} />}
      <Widths store={store} names={sides.names} />
      {!compare && stop}
    </div>
  );
}

/** Which ranges, in words. */
export function rangeWords({ a, b }: Ranges): string {
  const words = ({ from, to }: Span) => `${duration(from)} to ${duration(to)}`;
  return `A ${words(a)}, B ${words(b)}`;
}

/** Number of significant rows. */
function found(store: Store): string {
  const diff = store.diff.value;
  // The tree of callers grows, and another tree is on the screen around a method.
  void store.growth.value;
  if (!diff || store.busy.value || store.around.value !== '') return '';
  const marks = diff.total.found;
  if (marks === 0) return 'No frame of the graph differs significantly.';
  return `${plural(marks, 'frame')} of the graph ${marks === 1 ? 'differs' : 'differ'} significantly.`;
}

/** Common scale of both recordings. */
export function Pers({ store }: { store: Store }) {
  const { compare } = store.profile.header;
  if (!compare) return null;
  return (
    <select
      aria-label="Numbers are"
      value={store.per.value ?? compare.per}
      onChange={(event) => {
        const chosen = event.currentTarget.value;
        store.per.value = compare.possible.find((per) => per === chosen) ?? null;
      }}
    >
      {compare.possible.map((per: Per) => (
        <option key={per} value={per}>
          {PER_WORDS[per]}
        </option>
      ))}
    </select>
  );
}

function Widths({ store, names }: { store: Store; names: readonly [string, string] }) {
  const widths: readonly [Width, string][] = [
    ['both', `width: mean of ${names[0]} and ${names[1]}`],
    ['a', `as wide as ${names[0]}: new frames are left out`],
    ['b', `as wide as ${names[1]}: gone frames are left out`],
  ];
  return (
    <select
      aria-label="Frames are"
      value={store.wide.value}
      onChange={(event) => {
        const chosen = event.currentTarget.value;
        store.wide.value = widths.find(([width]) => width === chosen)?.[0] ?? 'both';
      }}
    >
      {widths.map(([width, words]) => (
        <option key={width} value={width}>
          {words}
        </option>
      ))}
    </select>
  );
}
