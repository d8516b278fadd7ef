// Moving the focus, showing frames, rows of the call tree, work in slices.
import { describe, expect, it } from 'vitest';
import { type Move, moved, revealing } from '../../src/flame/moves';
import { inSlices } from '../../src/tree/slices';
import { opened, treeRows } from '../../src/calltree/rows';
import { windowOf } from '../../src/ui/rows';
import { profileOf } from './art';
import { forward } from './trees';

const { tree, keys } = forward(
  profileOf(`
    weight: 900  90   9    1
            a.x  a.x  b.y  b.y
            a.p  a.q  b.r  b.s`),
);

function after(...moves: Move[]): string {
  const node = moves.reduce((at, move) => moved(tree, at, move), 0);
  return node === 0 ? 'all' : keys.label(tree.key(node));
}

describe('moving the focus', () => {
  it('follows the tree in, out and along a level', () => {
    expect(after('in')).toBe('a.x');
    expect(after('in', 'in')).toBe('a.p');
    expect(after('in', 'in', 'after')).toBe('a.q');
    // On into the next parent's children.
    expect(after('in', 'in', 'after', 'after')).toBe('b.r');
    expect(after('in', 'in', 'last')).toBe('b.s');
    expect(after('in', 'in', 'last', 'first')).toBe('a.p');
    expect(after('in', 'in', 'after', 'before')).toBe('a.p');
    expect(after('in', 'after', 'in', 'out')).toBe('b.y');
  });

  it('stays where there is nothing further', () => {
    expect(after('out')).toBe('all');
    expect(after('in', 'in', 'in')).toBe('a.p');
    expect(after('in', 'before')).toBe('a.x');
    expect(after('in', 'after', 'after')).toBe('b.y');
  });
});

describe('showing a frame', () => {
  const node = (...moves: Move[]) => moves.reduce((at, move) => moved(tree, at, move), 0);
  const all = { from: 0, to: 1000 };

  it('needs no zoom where it can be seen', () => {
    expect(revealing(tree, node('in'), all, 1000)).toBe(-1);
    expect(revealing(tree, 0, { from: 0, to: 900 }, 1000)).toBe(-1);
  });

  it('zooms to the outermost frame in which it is wide enough', () => {
    // b.s is 1 of 1000: too narrow; of its parent it is a tenth.
    expect(revealing(tree, node('in', 'in', 'last'), all, 1000)).toBe(node('in', 'after'));
    expect(revealing(tree, node('in', 'in', 'last'), all, 100)).toBe(node('in', 'in', 'last'));
    // Outside of the zoom.
    expect(revealing(tree, node('in', 'in'), { from: 990, to: 1000 }, 1000)).toBe(0);
  });
});

describe('rows of the call tree', () => {
  it('are the open nodes in reading order', () => {
    const open = opened(tree, 0, new Set());
    const rows = treeRows(tree, 0, open);
    const text = rows.map(({ node, level, place, siblings }) => {
      const name = node ? keys.label(tree.key(node)) : 'all';
      return `${level} ${name} ${place}/${siblings}`;
    });
    // a.x is 99 % of all and is opened with it.
    expect(text).toEqual(['1 all 1/1', '2 a.x 1/2', '3 a.p 1/2', '3 a.q 2/2', '2 b.y 2/2']);
    expect(treeRows(tree, 0, new Set()).length).toBe(1);
  });

  it('exist only where they can be seen', () => {
    expect(windowOf(10, 0, 500)).toEqual({ first: 0, end: 10, before: 0, after: 0 });
    const window = windowOf(100_000, 26 * 5000, 260);
    expect(window.end - window.first).toBe(34);
    expect(window.before + window.after + 34 * 26).toBe(100_000 * 26);
    expect(windowOf(3, 99999, 260)).toEqual({ first: 3, end: 3, before: 78, after: 0 });
  });
});

describe('work in slices', () => {
  function* work(steps: number): Generator<void, string> {
    for (let i = 0; i < steps; i++) yield;
    return 'done';
  }

  it('ends with the result', async () => {
    expect(await inSlices(work(1000), new AbortController().signal)).toBe('done');
  });

  it('yields between slices, and stops when it is cancelled', async () => {
    const abort = new AbortController();
    function* endless(): Generator<void, string> {
      for (;;) yield;
    }
    let slices = 0;
    const result = await inSlices(endless(), abort.signal, () => {
      slices++;
      if (slices === 3) abort.abort();
    });
    expect([result, slices]).toEqual([null, 3]);
  });
});
