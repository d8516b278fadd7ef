// Findings, and the places that they lead to.
import { describe, expect, it } from 'vitest';
import { findingsOf, type RawFinding } from '../../src/data/findings';
import { DEFAULTS } from '../../src/state/fragment';
import { Store } from '../../src/state/store';
import { withStandIns } from '../../src/data/standIns';
import { profileOf } from './art';

const RAW: RawFinding = {
  what: 'w',
  share: '',
  evidence: '',
  remedy: '',
  sure: 'high',
  measure: 'cpu',
  causes: [],
  endpoint: null,
};

const profile = profileOf(`
  a.A.run  a.A.run  a.A.run
  a.B.hot  a.C.call a.B.hot
  j.J.in   a.B.hot  j.J.in
`);

/** The first finding of a page of one. */
function findingOf(raw: Partial<RawFinding>, wall = false) {
  const header = { ...profile.header, wall: wall ? { ns: 1, busyNs: 1, causes: [] } : null };
  return findingsOf({ ...header, findings: [{ ...RAW, ...raw }] })[0]!;
}

/** Lets the slices of building a tree run. */
async function built(store: Store): Promise<void> {
  for (let i = 0; i < 100 && store.busy.value; i++) await new Promise((done) => setTimeout(done));
}

describe('findings', () => {
  it('have what they cost, and a bar where that can be compared', () => {
    expect(findingOf({ cost: '27.0 s', bar: 0.5 })).toMatchObject({ cost: '27.0 s', bar: 0.5 });
    expect(findingOf({ cost: '69.0 %', bar: null })).toMatchObject({ cost: '69.0 %', bar: null });
    // Data in the page is not trusted.
    expect(findingOf({ cost: 'a\u202eb', bar: 7 })).toMatchObject({ bar: 1 });
    expect(findingOf({ cost: 'a\u202eb' }).cost).not.toContain('\u202e');
  });

  it('about a lock lead to that lock', () => {
    const focus = { sort: 'lock' as const, name: 'a.Lock' };
    expect(findingOf({ measure: 'wall', focus }, true)).toMatchObject({
      view: 'locks',
      change: { lock: 'a.Lock' },
    });
    // Without wall time waits are events.
    const { view, change, seek } = findingOf({ measure: 'wall', focus });
    expect([view, change.measure!.time, seek]).toEqual(['flame', 'locks', 'a.Lock']);
  });

  it('about a class lead to its allocating code', () => {
    const focus = { sort: 'class' as const, name: 'a.Leak' };
    const { view, change, seek } = findingOf({ measure: 'live', focus });
    expect([view, change.reversed, change.measure!.time, seek]).toEqual([
      'flame',
      true,
      'live',
      'a.Leak',
    ]);
  });

  it('about threads of the runtime are zoomed to their frame, or show these threads', async () => {
    const art = profileOf(`
      thread: main    jit       jit
      a.A.run         n.C.loop  n.C.loop`);
    const role = Uint8Array.from(art.samples.thread, (thread) => (thread === 0 ? 0 : 2));
    const found = findingOf({ focus: { sort: 'role', name: 'JIT' } });
    for (const own of [1, 0]) {
      const made = withStandIns({ ...art, samples: { ...art.samples, role } });
      made.methods.own.fill(0);
      made.methods.own[0] = own;
      const store = new Store(made);
      store.start('');
      await built(store);
      store.show(found);
      await built(store);
      const { tree, keys, zoom, query, choice } = store;
      const label = keys.value.methodLabel(tree.value!.key(zoom.value));
      const expected = own
        ? ['JIT threads', 'JIT threads', { kind: 'all' }]
        : ['', '', { kind: 'one', thread: 1 }];
      expect([query.value, zoom.value === 0 ? '' : label, choice.value]).toEqual(expected);
      store.stop();
    }
  });

  it('about the recording lead to a section of the overview', () => {
    expect(findingOf({ focus: { sort: 'part', name: 'overtime' } })).toMatchObject({
      view: 'overview',
      part: 'overtime',
    });
  });

  it('name the thread group as the page does', () => {
    expect(findingOf({ threads: 'http-*-exec-*' }).change.threads).toEqual({
      kind: 'pool',
      pool: 'http-#-exec-#',
    });
    expect(findingOf({}).change.threads).toEqual({ kind: 'all' });
  });

  it('about a method zoom to its widest frame and search for it', async () => {
    const store = new Store(profile);
    store.start('#view=overview&q=other&reverse=1');
    await built(store);
    store.show(findingOf({ focus: { sort: 'method', name: 'a.B.hot' } }));
    await built(store);
    const [tree, zoom] = [store.tree.value!, store.zoom.value];
    expect([store.view.value, store.query.value, store.reversed.value]).toEqual([
      'flame',
      'a.B.hot',
      false,
    ]);
    expect(store.keys.value.methodLabel(tree.key(zoom))).toBe('a.B.hot');
    expect([tree.depth(zoom), tree.weight(zoom)]).toEqual([2, 2]);
    // A name that the recording does not have is not searched for.
    store.show(findingOf({ focus: { sort: 'method', name: 'a.None.m' } }));
    await built(store);
    expect([store.query.value, store.zoom.value]).toEqual([DEFAULTS.query, 0]);
    store.stop();
  });
});
