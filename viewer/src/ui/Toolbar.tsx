// Tools of the flame graph, the table and the tree: what is measured, switches, search.
import type { ComponentChildren } from 'preact';
import { CPU_TIME, duration, percent, plural, weight } from '../data/format';
import { IDLE, idleNumber, textOf, type Time } from '../data/measure';
import { plain, shortened } from '../data/plain';
import type { Colouring } from '../state/fragment';
import { rangeWords } from '../diff/DiffBar';
import { coloursOf } from '../flame/colours';
import { controllers } from '../flame/controller';
import { paintPicture } from '../flame/picture';
import type { Store } from '../state/store';
import { theme } from '../state/theme';
import { hasMine } from '../tree/frames';
import type { SplitBy } from '../tree/keys';
import { words } from '../tree/transform';
import { TIME_ID, toggleDialog } from './commands';
import { copy, save, stacksText } from './copy';
import { More } from './Filters';
import { SearchBox } from './SearchBox';

export function Toolbar({ store }: { store: Store }) {
  // Rows of the table are the same for callers and for callees, and for any root.
  const hasRoots = store.view.value !== 'table';
  return (
    <div class="toolbar" role="toolbar" aria-label="Stacks">
      <Measures store={store} />
      <WhichFrames store={store} />
      <More />
      <div class="group">
        {hasRoots && (
          <>
            <Switch value={store.reversed} hint="r">
              Callers
            </Switch>
            <Split store={store} />
          </>
        )}
        <Folding store={store} />
      </div>
      <SearchBox store={store} />
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

/** The application's frames with one row for what calls it and for what it calls, or all. */
function WhichFrames({ store }: { store: Store }) {
  if (!hasMine(store.profile)) return null;
  const isMine = store.frames.value === 'mine';
  const choice = (mine: boolean, label: string, title: string) => (
    <button
      type="button"
      aria-pressed={isMine === mine}
      title={`${title} (p)`}
      onClick={() => isMine !== mine && store.flipFrames()}
    >
      {label}
    </button>
  );
  return (
    <div class="group joined" role="group" aria-label="Frames">
      {choice(true, 'My code', 'Libraries, the JDK and the JVM are one row each')}
      {choice(false, 'All frames', 'Each frame has a row')}
    </div>
  );
}

const TIMES: readonly [Time, string][] = [
  ['wall', 'Wall time'],
  ['off', 'Waiting'],
];

/** CPU or wall time, by cause, and threads that held up others. */
function Measures({ store }: { store: Store }) {
  const { profile } = store;
  const { wall, waits } = profile.header;
  const hasLate = profile.late.node.some((node) => node !== 0);
  const hasOwners = profile.wall?.ownerNode.some((node) => node !== 0) ?? false;
  const hasAllocated = profile.allocations !== null && !profile.header.compare;
  const hasAlive = profile.alive !== null && !profile.header.compare;
  const hasLocks = profile.locks !== null && !profile.header.compare;
  if (!wall && !hasLate && !hasAllocated && !hasAlive && !hasLocks) return null;
  const causes = (wall?.causes ?? []).filter(({ cause }) => waits.includes(cause));
  const samples: [Time, string] = ['cpu', plain(profile.header.measured ?? CPU_TIME)];
  const named: [Time, string][] = wall ? [samples, ...TIMES] : [samples];
  if (hasAllocated) named.push(['alloc', 'Allocated']);
  if (hasAlive) named.push(['live', 'Alive']);
  if (hasLocks) named.push(['locks', 'In locks']);
  const others: [Time, string][] = [];
  if (hasOwners) others.push(['owners', 'Holders of contended locks']);
  if (hasLate) others.push(['late', 'Late for safepoints']);
  const times = [
    ...named.map(([time]) => time),
    ...causes.map(({ cause }): Time => ({ cause })),
    ...others.map(([time]) => time),
  ];
  // Names of the program are text only: a choice is known by its number.
  const chosen = times.findIndex((known) => textOf(known) === textOf(store.measure.value.time));
  // Shares are of the time that is shown; idle time that is not has one of all.
  const shareOf = (cause: string, ns: number) => {
    const isOfAll = store.idle.value || cause === IDLE;
    const share = percent(ns / ((isOfAll ? wall?.ns : wall?.busyNs) || 1));
    return isOfAll && !store.idle.value ? `${share} of all` : share;
  };
  const choose = (time: Time) => (store.measure.value = { ...store.measure.value, time });
  return (
    <select
      id={TIME_ID}
      aria-label="Time"
      value={chosen}
      onChange={(event) => choose(times[Number(event.currentTarget.value)] ?? 'cpu')}
    >
      {named.map(([, label], i) => (
        <option key={i} value={i}>
          {label}
        </option>
      ))}
      {causes.length > 0 && (
        <optgroup label="Waiting for">
          {causes.map(({ cause, ns }, i) => (
            <option key={i} value={named.length + i}>
              {shortened(plain(cause), 40)} {shareOf(cause, ns)}
            </option>
          ))}
        </optgroup>
      )}
      {others.length > 0 && (
        <optgroup label="Holding up others">
          {others.map(([, label], i) => (
            <option key={i} value={named.length + causes.length + i}>
              {label}
            </option>
          ))}
        </optgroup>
      )}
    </select>
  );
}

const COLOURINGS: readonly [Colouring, string][] = [
  ['kind', 'Colour by compilation (k)'],
  ['package', 'Colour by package (k)'],
  ['cause', 'Colour by wait cause (k)'],
];

const SPLITS: readonly [SplitBy, string][] = [
  ['none', 'No grouping'],
  ['thread', 'By thread'],
  ['group', 'By thread group'],
  ['endpoint', 'By endpoint'],
  ['cause', 'By cause'],
];

/** The stacks on show, a line each with its weight, as many tools read them. */
function copyStacks(store: Store): void {
  const tree = store.tree.value;
  if (!tree) return;
  const text = stacksText(tree, store.keys.value);
  if (text === '') store.tell('Too many stacks for the clipboard; use dwell convert.');
  else void copy(store, 'the stacks', text);
}

/** The whole graph with its title, its measure and the legend. */
function savePicture(store: Store): void {
  const made = [...controllers].map((controller) => controller.picture());
  const graphs = made.filter((graph) => graph !== null);
  if (graphs.length === 0) return;
  const left = graphs.reduce((sum, graph) => sum + graph.left, 0);
  const { background } = coloursOf(theme.peek());
  const lines = [pictureWords(store)];
  if (left > 0) lines.push(`${plural(left, 'level')} had no room in this picture`);
  const canvas = paintPicture({
    title: document.querySelector('h1')?.textContent ?? 'dwell',
    lines,
    graphs: graphs.map(({ canvas }) => canvas),
    legend: [...document.querySelectorAll('footer li')].map((entry) => {
      const swatch = entry.querySelector('.swatch');
      const colour = swatch ? getComputedStyle(swatch).backgroundColor : '';
      return { colour, text: (entry.textContent ?? '').trim() };
    }),
    text: getComputedStyle(document.body).color,
    background,
    ratio: window.devicePixelRatio || 1,
  });
  canvas.toBlob((blob) => {
    if (blob) save('flame.png', blob);
    else store.tell('The picture is too large for this browser.');
  });
}

/** Words for the graph: the measure, and all filters that are set. */
function pictureWords(store: Store): string {
  const time = document.getElementById(TIME_ID);
  const chosen = time instanceof HTMLSelectElement ? time.selectedOptions[0]?.text : undefined;
  const { measured, unit } = store.shown.value.header;
  const parts = [(chosen ?? plain(measured ?? CPU_TIME)).trim()];
  const tree = store.tree.value;
  if (tree) parts.push(weight(tree.total, unit));
  const { endpoint } = store.measure.value;
  if (endpoint !== null) parts.push(plain(endpoint));
  const threads = document.querySelector<HTMLSelectElement>('select[aria-label="Threads"]');
  if (store.choice.value.kind !== 'all' && threads) {
    parts.push(threads.selectedOptions[0]?.text ?? '');
  }
  const [during, ranges] = [store.during.value, store.ranges.value];
  if (ranges) parts.push(rangeWords(ranges));
  else if (during) parts.push(`${duration(during.from)} to ${duration(during.to)}`);
  if (store.onlyRequest.value) parts.push('one request');
  if (store.frames.value === 'mine') parts.push('my code');
  if (store.reversed.value) parts.push('callers');
  if (store.around.value !== '') parts.push(`callers and callees of ${store.around.value}`);
  parts.push(...store.transforms.value.map((transform) => plain(words(transform))));
  return parts.join(' · ');
}

function flip(of: { value: boolean }): void {
  of.value = !of.value;
}

/** Transforms of all stacks, or of the focused frame. */
function Folding({ store }: { store: Store }) {
  const isFolded = store.transforms.value.some(({ kind }) => kind === 'recursion');
  const options: readonly [label: string, run: () => void][] = [
    ['Zoom all the way out (0)', () => store.resetZoom()],
    [`${store.icicle.value ? '✓ ' : ''}Root on top (i)`, () => flip(store.icicle)],
    [`${store.byLine.value ? '✓ ' : ''}Split by line (l)`, () => flip(store.byLine)],
    ['Copy stacks as text', () => copyStacks(store)],
    ...(store.view.value === 'flame'
      ? [['Save as PNG', () => savePicture(store)] as [string, () => void]]
      : []),
    ['Frame: lists and transforms… (f)', () => toggleDialog('frame')],
    ['Merge the frame into its callers (M)', () => store.transformFocused('merge')],
    ['Drop stacks with the frame (D)', () => store.transformFocused('drop')],
    [
      isFolded ? 'Unfold recursion (u)' : 'Fold recursion (u)',
      () => store.transform({ kind: 'recursion', name: '' }),
    ],
    [
      store.around.value === '' ? 'Callers and callees (g)' : 'All stacks (g)',
      () => store.flipAround(),
    ],
    ...COLOURINGS.filter(([to]) => to !== 'cause' || store.profile.wall !== null).map(
      ([to, label]): [string, () => void] => [
        `${store.colouring.value === to ? '✓ ' : ''}${label}`,
        () => store.colourBy(to),
      ],
    ),
    ...(idleNumber(store.profile.header) < 0
      ? []
      : [
          [
            store.idle.value ? 'Wall time without idle time (a)' : 'Wall time with idle time (a)',
            () => (store.idle.value = !store.idle.value),
          ] as [string, () => void],
        ]),
    [
      store.original.value ? 'Readable names (o)' : 'Original names of generated classes (o)',
      () => (store.original.value = !store.original.value),
    ],
  ];
  return (
    <select
      aria-label="Stacks"
      class="folding"
      value=""
      onChange={(event) => {
        const chosen = options[Number(event.currentTarget.value)];
        event.currentTarget.value = '';
        chosen?.[1]();
      }}
    >
      <option value="">More…</option>
      {options.map(([label], i) => (
        <option key={i} value={i}>
          {label}
        </option>
      ))}
    </select>
  );
}

/** What gets a root of its own. */
function Split({ store }: { store: Store }) {
  return (
    <select
      aria-label="Split"
      title="Key s"
      value={store.split.value}
      onChange={(event) => {
        const chosen = event.currentTarget.value;
        store.split.value = SPLITS.find(([by]) => by === chosen)?.[0] ?? 'none';
      }}
    >
      {SPLITS.map(([by, label]) => (
        <option key={by} value={by}>
          {label}
        </option>
      ))}
    </select>
  );
}
