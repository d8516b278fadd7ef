// One method in the middle: above it its callers, below it what it calls, both as wide as the time of
// all its calls. Each half is a graph of its own, made of the same choices.
import { effect, untracked } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { percent, weight } from '../data/format';
import { shortened } from '../data/plain';
import { changeInWords } from '../diff/describe';
import type { Shared } from '../state/fragment';
import { Store } from '../state/store';
import { takeFocus } from '../ui/focus';
import { FlameView } from './FlameView';

export function SandwichView({ store }: { store: Store }) {
  const [above, below] = useMemo(
    () => [new Store(store.profile, store), new Store(store.profile, store)] as const,
    [store],
  );
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const halves = [above, below];
    for (const half of halves) half.start('');
    const disposers = halves.map((half) =>
      effect(() => {
        const shared = halfOf(store.shared, half === above);
        untracked(() => half.apply(shared));
      }),
    );
    const said = halves.map((half) =>
      effect(() => {
        if (half.said.value !== '') store.said.value = half.said.value;
      }),
    );
    // Keys that do something to a frame mean the one that was gone to last, in either half.
    const parts = halves.map((half) =>
      effect(() => {
        if (half.focused.value !== 0) store.part = half;
      }),
    );
    takeFocus(box.current?.querySelector<HTMLElement>('.flame-scroll') ?? null);
    return () => {
      store.part = null;
      for (const dispose of [...disposers, ...said, ...parts]) dispose();
      for (const half of halves) half.stop();
    };
  }, [store, above, below]);
  const choose = (half: Store) => (node: number) => {
    half.focused.value = node;
    const name = half.focusedMethod();
    if (name !== '') store.around.value = name;
  };
  return (
    <div ref={box} class="sandwich" aria-busy={above.busy.value || below.busy.value}>
      <FlameView store={above} part="Callers" choose={choose(above)} />
      <Middle store={store} below={below} />
      <FlameView store={below} part="Callees" choose={choose(below)} />
    </div>
  );
}

/** What a half shows of the same choices. */
function halfOf(shared: Shared, isAbove: boolean): Shared {
  const kind = isAbove ? ('callers' as const) : ('focus' as const);
  return {
    ...shared,
    view: 'flame',
    around: '',
    zoom: [],
    split: 'none',
    byLine: false,
    icicle: !isAbove,
    reversed: isAbove,
    transforms: [...shared.transforms, { kind, name: shared.around }],
  };
}

/** The method, its time, and the way back. */
function Middle({ store, below }: { store: Store; below: Store }) {
  const tree = below.tree.value;
  const { samples } = store.shown.value;
  const threads = store.threads.value;
  const all = useMemo(() => {
    let all = 0;
    for (let i = 0; i < samples.node.length; i++) {
      if (threads[samples.thread[i]!]) all += samples.weight[i]!;
    }
    return all;
  }, [samples, threads]);
  const { unit } = store.shown.value.header;
  const total = tree?.total ?? 0;
  const diff = below.diff.value;
  const isThere = diff ? diff.total.rates(0).some((rate) => rate > 0) : total > 0;
  const told = diff
    ? changeInWords(diff, 0, unit)
    : `${percent(total / (all || 1))}, ${weight(total, unit)}`;
  return (
    <p class="middle">
      <b>{shortened(store.around.value, 160)}</b> {isThere ? told : 'is not on the selected stacks'}
      <span class="weak"> · right-click a frame to centre it </span>
      <button type="button" title="Key g" onClick={() => (store.around.value = '')}>
        All stacks
      </button>
    </p>
  );
}
