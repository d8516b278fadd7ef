// Text for the clipboard and for files.
import { describe, expect, it } from 'vitest';
import { buildForward } from '../../src/tree/forward';
import { makeKeys } from '../../src/tree/keys';
import { ReverseTree } from '../../src/tree/reverse';
import { atOnce } from '../../src/tree/slices';
import { transformed } from '../../src/tree/transform';
import { csvOf, stacksText, stackText } from '../../src/ui/copy';
import { profileOf } from './art';

const PROFILE = profileOf(`
  weight:  5        2        3
           a.A.run  a.A.run  a.A.run
           b.B.x;y  b.B.z    -
`);
const keys = makeKeys(PROFILE, false);
const request = { profile: PROFILE, keys, threads: Uint8Array.of(1), split: 'none' as const };

describe('stacks as text', () => {
  it('have the innermost frame first, in both directions', () => {
    const tree = atOnce(buildForward(request));
    const node = tree.children(tree.children(0)[0]!)[0]!;
    expect(stackText(tree, keys, node)).toBe('b.B.x;y\na.A.run');
    const callers = new ReverseTree(request);
    const caller = callers.children(callers.children(0)[0]!)[0]!;
    expect(stackText(callers, keys, caller)).toBe('b.B.x;y\na.A.run');
  });

  it('are lines of frames with their weights', () => {
    const lines = stacksText(atOnce(buildForward(request)), keys).split('\n');
    expect(lines.sort()).toEqual(['a.A.run 3', 'a.A.run;b.B.x:y 5', 'a.A.run;b.B.z 2']);
  });
});

describe('comma-separated values', () => {
  it('quote what would end a cell, and begin no formula', () => {
    expect(
      csvOf([
        ['a', 1.5],
        ['x,"y"', 2],
        ['=cmd()', 3],
        ['two\nlines', 4],
      ]),
    ).toBe(`a,1.5\n"x,""y""",2\n'=cmd(),3\n"two\nlines",4\n`);
  });
});

describe('only what a search finds', () => {
  it('keeps whole stacks with a match, by text and by pattern', () => {
    const sum = (name: string) => {
      const { samples } = transformed(PROFILE, keys, [{ kind: 'only', name }]);
      return samples.weight.reduce((all, weight) => all + weight, 0);
    };
    expect([sum('b.b'), sum('/z$/'), sum('a.a'), sum('none'), sum('/(/')]).toEqual([
      7, 2, 10, 0, 0,
    ]);
  });
});
