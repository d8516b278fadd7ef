// The call tree as rows: the data of the flame graph as text.
import { useComputed, useSignal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { count, percent, weight } from '../data/format';
import { shortened } from '../data/plain';
import { rate, signedRate } from '../diff/words';
import { takeFocus } from '../ui/focus';
import { openMenu } from '../ui/FrameMenu';
import type { Store } from '../state/store';
import type { FrameTree } from '../tree/tree';
import { CHAR_PX, nameRoom, scrollToRow, selectRow, useScroll, windowOf } from '../ui/rows';
import { opened, type TreeRow, treeRows } from './rows';

/** Deeper rows are not moved further to the right. */
const INDENT_MAX = 40;
const INDENT_PX = 12;
/** Width of the other columns, as in the style sheet. */
const OTHERS_PX = { narrow: 150, wide: 360 };

/** The open nodes and the row that is current, with the keys that change them. */
function useTree(store: Store, box: RefObject<HTMLElement | null>) {
  const open = useSignal<ReadonlySet<number>>(new Set());
  const current = useSignal(0);
  const rows = useComputed(() => {
    const tree = store.tree.value;
    return tree ? treeRows(tree, store.zoom.value, open.value) : [];
  });
  const move = (row: number) => {
    current.value = Math.max(0, Math.min(rows.value.length - 1, row));
    scrollToRow(box.current!, current.value);
  };
  const expand = (node: number) => (open.value = opened(store.tree.value!, node, open.value));
  const collapse = (node: number) => (open.value = closed(open.value, node));
  const onKey = (event: KeyboardEvent) => {
    const at = current.value;
    const row = rows.value[at];
    const tree = store.tree.value;
    if (!tree || !row || event.ctrlKey || event.metaKey || event.altKey) return;
    const isOpen = open.value.has(row.node) && tree.hasChildren(row.node);
    if (event.key === 'ContextMenu' || (event.key === 'F10' && event.shiftKey)) {
      const { left, top } = box.current!.getBoundingClientRect();
      openMenu({ store, x: left + 30, y: top + 30, key: tree.key(row.node), node: row.node });
      event.preventDefault();
      return;
    }
    const actions: Record<string, () => unknown> = {
      ArrowDown: () => move(at + 1),
      ArrowUp: () => move(at - 1),
      Home: () => move(0),
      End: () => move(rows.value.length - 1),
      ArrowRight: () => (isOpen ? move(at + 1) : expand(row.node)),
      ArrowLeft: () => (isOpen ? collapse(row.node) : move(parentRow(rows.value, at))),
      Enter: () => store.zoomTo(row.node),
    };
    if (!Object.hasOwn(actions, event.key)) return;
    actions[event.key]!();
    event.preventDefault();
  };
  const choose = (index: number, node: number) => {
    current.value = index;
    if (open.value.has(node)) collapse(node);
    else expand(node);
  };
  return { open, current, rows, onKey, choose };
}

export function CallTreeView({ store }: { store: Store }) {
  const box = useRef<HTMLDivElement>(null);
  const { open, current, rows, onKey, choose } = useTree(store, box);
  const scroll = useScroll(box);
  const tree = store.tree.value;
  const root = store.zoom.value;
  useEffect(() => {
    if (tree) open.value = opened(tree, root, new Set());
    current.value = 0;
  }, [tree, root]);
  useEffect(() => takeFocus(box.current), []);
  const node = rows.value[current.value]?.node ?? 0;
  const key = tree && node !== 0 ? tree.key(node) : -1;
  const selected = key >= 0 && !store.keys.value.isGroup(key) ? key : -1;
  useEffect(() => selectRow(store, selected), [store, selected]);
  const shown = windowOf(rows.value.length, scroll.top, scroll.height);
  const room = nameRoom(scroll, scroll.width < 620 ? OTHERS_PX.narrow : OTHERS_PX.wide);
  return (
    <div class={store.sides.value ? 'tree-view of-two' : 'tree-view'}>
      <div class="tree-head" aria-hidden="true">
        {headsOf(store).map((head) => (
          <span key={head} class="number">
            {head}
          </span>
        ))}
        <span>Frame</span>
      </div>
      <div
        ref={box}
        class="scroll tree"
        role="tree"
        tabIndex={0}
        aria-label={store.reversed.value ? 'Callers' : 'Callees'}
        aria-activedescendant={rows.value.length > 0 ? `row-${current.value}` : undefined}
        onKeyDown={onKey}
      >
        <div role="presentation" style={{ height: `${shown.before}px` }} />
        {tree &&
          rows.value.slice(shown.first, shown.end).map((row, i) => (
            <Row
              key={row.node}
              store={store}
              tree={tree}
              row={row}
              index={shown.first + i}
              open={open.value.has(row.node)}
              room={room}
              current={current.value === shown.first + i}
              onClick={() => choose(shown.first + i, row.node)}
              onMenu={(event) => {
                current.value = shown.first + i;
                const { clientX: x, clientY: y } = event;
                const of = { store, x, y, key: tree.key(row.node), node: row.node };
                if (row.node > 0 && openMenu(of)) event.preventDefault();
              }}
            />
          ))}
        <div role="presentation" style={{ height: `${shown.after}px` }} />
      </div>
    </div>
  );
}

function headsOf(store: Store): readonly string[] {
  const sides = store.sides.value;
  return sides ? [...sides.names, 'Change'] : ['Total', 'Self', 'Samples', 'Time'];
}

/** Of a comparison both sides and the change, marked if that is more than chance. */
function numbersOf(store: Store, tree: FrameTree, node: number): readonly string[] {
  const diff = store.diff.value;
  if (!diff) {
    const all = tree.total || 1;
    const shares = [tree.weight(node), tree.own(node)].map((value) => percent(value / all));
    const { unit } = store.shown.value.header;
    return [...shares, count(tree.samples(node)), weight(tree.weight(node), unit)];
  }
  const { per } = diff.sides.base;
  const { unit } = store.shown.value.header;
  const change = diff.total.at(node);
  const mark = diff.total.isSignificant(node) ? ' *' : '';
  return [
    rate(change.a, per, unit),
    rate(change.b, per, unit),
    signedRate(change.b - change.a, per, unit) + mark,
  ];
}

function closed(open: ReadonlySet<number>, node: number): Set<number> {
  const out = new Set(open);
  out.delete(node);
  return out;
}

function parentRow(rows: readonly TreeRow[], at: number): number {
  const level = rows[at]?.level ?? 1;
  for (let row = at - 1; row >= 0; row--) if (rows[row]!.level < level) return row;
  return at;
}

function Row(props: {
  store: Store;
  tree: FrameTree;
  row: TreeRow;
  index: number;
  open: boolean;
  /** Characters of the name that fit without its indent. */
  room: number;
  current: boolean;
  onClick(): void;
  onMenu(event: MouseEvent): void;
}) {
  const { store, tree, row } = props;
  const { node, level } = row;
  const has = tree.hasChildren(node);
  const key = tree.key(node);
  const matched = node !== 0 && store.matched.value?.[key] === 1;
  const indent = Math.min(level - 1, INDENT_MAX) * INDENT_PX;
  const room = Math.max(20, props.room - Math.floor(indent / CHAR_PX));
  const name = node === 0 ? 'all' : store.keys.value.label(key) || '(unnamed)';
  return (
    <div
      id={`row-${props.index}`}
      class={matched ? 'tree-row found' : 'tree-row'}
      role="treeitem"
      aria-level={level}
      aria-posinset={row.place}
      aria-setsize={row.siblings}
      aria-expanded={has ? props.open : undefined}
      aria-selected={props.current}
      onClick={props.onClick}
      onContextMenu={props.onMenu}
    >
      {numbersOf(store, tree, node).map((number, i) => (
        <span key={i} class="number">
          {i === 0 && !store.diff.value && (
            <span
              class="bar"
              style={{ width: `${(tree.weight(node) / (tree.total || 1)) * 100}%` }}
            />
          )}
          <span class="value">{number}</span>
        </span>
      ))}
      <span class="name" style={{ paddingLeft: `${indent}px` }}>
        <span class="twist" aria-hidden="true">
          {has ? (props.open ? '▾' : '▸') : ''}
        </span>
        {shortened(name, room)}
        {level > INDENT_MAX && <span class="note"> level {level}</span>}
      </span>
    </div>
  );
}
