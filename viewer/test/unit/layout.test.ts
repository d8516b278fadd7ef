// Which rectangles are drawn, and where levels are.
import { describe, expect, it } from 'vitest';
import {
  contentHeight,
  depthIn,
  layoutLevel,
  levelAt,
  Rects,
  type Stack,
  topOf,
  visibleLevels,
} from '../../src/flame/layout';
import { firstEndingAfter, firstStartingAt, type Level, nodeAt } from '../../src/tree/tree';
import { randomOf } from './art';

function levelOf(widths: number[], gaps: number[] = []): Level {
  const x = new Float64Array(widths.length);
  let at = 0;
  widths.forEach((width, i) => {
    at += gaps[i] ?? 0;
    x[i] = at;
    at += width;
  });
  return {
    n: widths.length,
    x,
    w: Float64Array.from(widths),
    id: Uint32Array.from(widths, (_, i) => i + 100),
  };
}

function drawn(level: Level, from: number, to: number, width: number) {
  const rects = new Rects();
  layoutLevel(level, { from, to }, width, rects);
  return Array.from({ length: rects.n }, (_, i) => ({
    left: rects.left[i]!,
    right: rects.right[i]!,
    node: rects.node[i]!,
    count: rects.count[i]!,
  }));
}

describe('searching a level', () => {
  it('finds the same places as looking at all', () => {
    const random = randomOf(7);
    for (let round = 0; round < 200; round++) {
      const widths = Array.from({ length: random(40) }, () => random(4));
      const level = levelOf(
        widths,
        widths.map(() => random(3)),
      );
      const at = random(100);
      const ends = [...level.x].findIndex((x, i) => x + level.w[i]! > at);
      expect(firstEndingAfter(level, at)).toBe(ends < 0 ? level.n : ends);
      const from = random(level.n + 1);
      const starts = [...level.x].findIndex((x, i) => i >= from && x >= at);
      expect(firstStartingAt(level, at, from)).toBe(starts < 0 ? level.n : starts);
    }
  });

  it('finds no node in a gap', () => {
    const level = levelOf([2, 2], [0, 5]);
    expect([nodeAt(level, 1), nodeAt(level, 3), nodeAt(level, 8), nodeAt(level, 99)]).toEqual([
      100, -1, 101, -1,
    ]);
  });
});

describe('rectangles of a level', () => {
  it('draws wide frames one by one', () => {
    expect(drawn(levelOf([30, 70]), 0, 100, 200)).toEqual([
      { left: 0, right: 60, node: 100, count: 1 },
      { left: 60, right: 200, node: 101, count: 1 },
    ]);
  });

  it('cuts what reaches out of the range', () => {
    expect(drawn(levelOf([50, 50]), 25, 75, 100)).toEqual([
      { left: 0, right: 50, node: 100, count: 1 },
      { left: 50, right: 100, node: 101, count: 1 },
    ]);
  });

  it('merges narrow frames by pixel', () => {
    const rects = drawn(levelOf(Array.from({ length: 100 }, () => 1)), 0, 100, 10);
    expect(rects.length).toBe(10);
    expect(rects.every((rect, i) => rect.left === i && rect.count === 10)).toBe(true);
  });

  it('keeps a wide frame behind narrow ones for itself', () => {
    const rects = drawn(levelOf([0.1, 0.1, 5]), 0, 10, 10);
    expect(rects.map(({ node, count }) => [node, count])).toEqual([
      [100, 2],
      [102, 1],
    ]);
  });

  it('leaves gaps empty', () => {
    const rects = drawn(levelOf([1, 1], [0, 50]), 0, 100, 100);
    expect(rects.map(({ left }) => left)).toEqual([0, 51]);
  });

  it('draws no more than the screen has room for, and misses nothing', () => {
    const random = randomOf(11);
    for (let round = 0; round < 50; round++) {
      const widths = Array.from({ length: 500 }, () => random(100) ** 3 / 1e4);
      const level = levelOf(
        widths,
        widths.map(() => (random(4) === 0 ? random(20) : 0)),
      );
      const end = level.x[499]! + level.w[499]!;
      const from = (random(50) / 100) * end;
      const to = from + (0.01 + random(50) / 100) * end;
      const width = 64;
      const rects = drawn(level, from, to, width);
      expect(rects.length).toBeLessThanOrEqual(width * 2);
      const shown = [...level.x].filter((x, i) => x < to && x + level.w[i]! > from).length;
      const sum = rects.reduce((count, rect) => count + rect.count, 0);
      // Frames without any width at the very start of the range may be counted or not.
      expect(Math.abs(sum - shown)).toBeLessThanOrEqual(widths.filter((w) => w === 0).length);
      for (let i = 1; i < rects.length; i++) {
        expect(rects[i]!.left).toBeGreaterThanOrEqual(rects[i - 1]!.left);
      }
    }
  });

  it('draws nothing of an empty range', () => {
    expect(drawn(levelOf([10]), 5, 5, 100)).toEqual([]);
    expect(drawn(levelOf([]), 0, 5, 100)).toEqual([]);
  });
});

describe('levels on the screen', () => {
  const stack = (icicle: boolean, levels: number, scrollTop = 0): Stack => ({
    icicle,
    levels,
    scrollTop,
    rowHeight: 20,
    viewportHeight: 100,
  });

  it('puts the root at the bottom of a flame and on top of an icicle', () => {
    expect(topOf(0, stack(true, 3))).toBe(0);
    expect(topOf(0, stack(false, 3))).toBe(80);
    expect(topOf(0, stack(false, 1000, contentHeight(stack(false, 1000)) - 100))).toBe(80);
  });

  it('finds the level at a place, for both directions and any scroll position', () => {
    for (const icicle of [true, false]) {
      for (const levels of [3, 8192]) {
        for (const scrollTop of [0, 7, levels > 100 ? 5000 : 0]) {
          const at = stack(icicle, levels, scrollTop);
          for (let level = 0; level < levels; level += 97) {
            const top = topOf(level, at);
            expect([levelAt(top + 0.5, at), levelAt(top + 19.5, at)]).toEqual([level, level]);
          }
        }
      }
    }
  });

  it('shows only what is in the viewport', () => {
    expect(visibleLevels(stack(true, 8192, 2000))).toEqual({ first: 100, last: 104 });
    expect(visibleLevels(stack(false, 8192, 8192 * 20 - 100))).toEqual({ first: 0, last: 4 });
    expect(visibleLevels(stack(false, 2))).toEqual({ first: 0, last: 1 });
  });

  it('knows how deep a range is', () => {
    const levels = [levelOf([10]), levelOf([4, 6]), levelOf([2], [4])];
    expect([depthIn(levels, { from: 0, to: 10 }), depthIn(levels, { from: 0, to: 4 })]).toEqual([
      3, 2,
    ]);
    expect(depthIn(levels, { from: 20, to: 30 })).toBe(0);
  });
});
