// The state of the page and its form in the address.
import { describe, expect, it } from 'vitest';
import {
  DEFAULTS,
  fromFragment,
  ofTwo,
  type Shared,
  toFragment,
  VIEWS,
  viewsOf,
} from '../../src/state/fragment';
import { Store } from '../../src/state/store';
import { chosenThreads, type ThreadChoice, withThread } from '../../src/tree/select';
import { profileOf } from './art';

describe('the address', () => {
  it('keeps the whole state', () => {
    const state: Shared = {
      view: 'table',
      icicle: true,
      reversed: true,
      split: 'endpoint',
      byLine: true,
      threads: { kind: 'pool', pool: 'http & more #' },
      measure: { time: { cause: 'monitor' }, endpoint: 'GET /a b' },
      idle: true,
      query: '/a=b&c#é/',
      zoom: [3, 1, 4],
      during: { from: 1_000_000, to: 2_500_000_000 },
      against: { from: 3_000_000_000, to: 4_000_000_000 },
      sight: { from: 0, to: 7_000 },
      request: 12,
      onlyRequest: true,
      versus: true,
      per: 'sample',
      wide: 'a',
      transforms: [
        { kind: 'focus', name: 'a.B$C.m&=#' },
        { kind: 'recursion', name: '' },
      ],
      original: true,
      colour: 'cause',
      around: 'a.B.m',
      lock: 'a.Lock & more',
      frames: 'mine',
    };
    expect(fromFragment(`#${toFragment(state)}`)).toEqual(state);
    expect(
      fromFragment(toFragment({ ...DEFAULTS, threads: { kind: 'one', thread: 7 } })).threads,
    ).toEqual({ kind: 'one', thread: 7 });
    const some = { kind: 'some' as const, threads: [3, 7] };
    expect(fromFragment(toFragment({ ...DEFAULTS, threads: some })).threads).toEqual(some);
    expect(toFragment(DEFAULTS)).toBe('');
  });

  it('has nothing of times and requests in a page of two recordings', () => {
    const text = 'view=locks&range=1-2&request=3&only=1&versus=slow&per=request&q=x&wide=b';
    const shared = ofTwo(fromFragment(text), ['second', 'sample']);
    expect(toFragment(shared)).toBe('wide=b&q=x');
    // Callers and callees are there for two as well.
    const two = ofTwo(fromFragment('view=flame&reverse=1&around=a.B.c'), ['second']);
    expect(toFragment(two)).toBe('view=flame&reverse=1&around=a.B.c');
    expect(ofTwo(fromFragment('view=table&per=sample'), ['sample']).per).toBe('sample');
  });

  it('has no view of safepoints if the recording has none', () => {
    const none = profileOf('main.A.x');
    expect(viewsOf(none)).toEqual(VIEWS.filter((view) => view !== 'safepoints'));
    const store = new Store(none);
    store.start('view=safepoints');
    expect(store.view.value).toBe('overview');
    store.stop();
    const some = { ...none, stops: { ...none.stops, time: new Float64Array(1) } };
    expect(viewsOf(some)).toEqual(VIEWS);
  });

  it('leaves out what makes no sense', () => {
    for (const text of [
      'view=evil',
      'icicle=2',
      'split=1',
      'stacks=[["evil","x"]]',
      'stacks=[["focus"]]',
      'stacks={"a":1}',
      'stacks=[',
      `stacks=${JSON.stringify(Array(99).fill(['recursion', '']))}`,
      'names=2',
      'colour=red',
      'versus=1',
      'per=hour',
      'wide=c',
      'range=5-5',
      'range=9-3',
      'range=-1-3',
      'range=1-2-3',
      'sight=x',
      'request=-1',
      'idle=yes',
      'only=1',
      'thread=-1',
      'thread=1e9',
      'thread=99999999999',
      'zoom=1.x',
      'zoom=-1',
      `zoom=${'1.'.repeat(1000)}1`,
      '%',
      '=',
      '&&&',
      'q=%E0%A4%A',
      '__proto__=1',
      'zoom=',
    ]) {
      expect(fromFragment(`#${text}`), text).toEqual(DEFAULTS);
    }
    expect(fromFragment(`q=${'x'.repeat(5000)}`).query.length).toBe(1000);
  });

  it('does not write a place that is too deep', () => {
    expect(toFragment({ ...DEFAULTS, zoom: Array.from({ length: 300 }, () => 1) })).toBe('');
  });
});

const ART = `
  thread: main  main  worker
  weight: 60    30    10
          a.x   a.x   c.z
          b.y   c.z   -`;

async function storeOf(fragment = ''): Promise<Store> {
  const store = new Store(profileOf(ART));
  store.start(fragment);
  await settled(store);
  return store;
}

async function settled(store: Store): Promise<void> {
  for (let i = 0; i < 1000 && store.busy.value; i++)
    await new Promise((done) => setTimeout(done, 1));
  expect(store.busy.value).toBe(false);
}

function zoomed(store: Store): string {
  const tree = store.tree.value!;
  return store.zoom.value === 0 ? 'all' : store.keys.value.label(tree.key(store.zoom.value));
}

describe('the state', () => {
  it('zooms in, goes back step by step, and resets', async () => {
    const store = await storeOf();
    const tree = store.tree.value!;
    const [a] = Array.from(tree.children(0));
    const [b] = Array.from(tree.children(a!));
    store.zoomTo(a!);
    store.zoomTo(b!);
    expect([zoomed(store), store.range.value]).toEqual(['b.y', { from: 0, to: 60 }]);
    expect([store.zoomOut(), zoomed(store)]).toEqual([true, 'a.x']);
    expect([store.zoomOut(), zoomed(store), store.zoomOut()]).toEqual([true, 'all', false]);
    store.zoomTo(b!);
    store.resetZoom();
    expect(zoomed(store)).toBe('all');
    store.zoomTo(9999);
    store.zoomTo(-1);
    expect(zoomed(store)).toBe('all');
    store.stop();
  });

  it('comes back from its own address', async () => {
    for (const start of ['', 'reverse=1', 'split=thread', 'reverse=1&split=thread', 'lines=1']) {
      const store = await storeOf(start);
      const tree = store.tree.value!;
      const first = tree.children(0)[0]!;
      store.zoomTo(tree.children(first)[0]!);
      store.query.value = 'c.';
      const again = await storeOf(`#${store.fragment}`);
      expect([zoomed(again), again.query.value, again.fragment], start).toEqual([
        zoomed(store),
        'c.',
        store.fragment,
      ]);
      expect(zoomed(again), start).not.toBe('all');
      store.stop();
      again.stop();
    }
  });

  it('takes an address that changes under way', async () => {
    const store = await storeOf();
    store.apply(fromFragment('#reverse=1&q=a'));
    await settled(store);
    expect([store.reversed.value, store.query.value, store.tree.value!.grow !== undefined]).toEqual(
      [true, 'a', true],
    );
    store.apply(fromFragment('#zoom=1'));
    await settled(store);
    expect([store.reversed.value, zoomed(store)]).toEqual([false, 'a.x']);
    store.stop();
  });

  it('follows the choice of threads', async () => {
    const store = await storeOf();
    store.query.value = 'c.z';
    expect(store.matchedWeight.value).toEqual({ matched: 40, all: 100 });
    store.choice.value = { kind: 'one', thread: 1 };
    await settled(store);
    expect(store.tree.value!.total).toBe(10);
    expect(store.matchedWeight.value).toEqual({ matched: 10, all: 10 });
    store.stop();
  });

  it('goes to matches and zooms where they could not be seen', async () => {
    const store = await storeOf();
    store.width.value = 20;
    store.query.value = 'c.z';
    store.nextMatch(1);
    const tree = store.tree.value!;
    expect(tree.weight(store.focused.value)).toBe(10);
    expect(zoomed(store)).toBe('c.z');
    store.nextMatch(1);
    expect(tree.weight(store.focused.value)).toBe(30);
    store.stop();
  });
});

describe('several threads', () => {
  it('are chosen one by one, and make the tree', () => {
    const profile = profileOf(`
      thread: a      b      c
              a.A.x  a.A.x  a.A.x
    `);
    let choice: ThreadChoice = { kind: 'pool', pool: 'x' };
    choice = withThread(choice, 2, true);
    expect(choice).toEqual({ kind: 'one', thread: 2 });
    choice = withThread(choice, 0, true);
    expect(choice).toEqual({ kind: 'some', threads: [0, 2] });
    expect([...chosenThreads(profile, choice)]).toEqual([1, 0, 1]);
    choice = withThread(withThread(choice, 2, false), 0, false);
    expect(choice).toEqual({ kind: 'all' });
    // An address may name threads that there are not.
    expect([...chosenThreads(profile, { kind: 'some', threads: [1, 99] })]).toEqual([0, 1, 0]);
  });
});
