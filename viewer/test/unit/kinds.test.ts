// Classes are a kind of their own, and the code below them is what spends.
import { describe, expect, it } from 'vitest';
import { classKind, kindShares, withClasses } from '../../src/data/kinds';
import { measured } from '../../src/data/measure';
import { ALL, entriesOf, profileOf } from './art';

/** Compiled and interpreted code that allocates, and a frame of other code that is no class. */
function profile() {
  const cpu = profileOf(`
    a.A.x[C2]       a.A.y[interpreted]  a.A.z[other]
    byte[][other]   a.Item[other]       -`);
  const samples = entriesOf({ time: [1, 2], node: [2, 4], weight: [300, 100] });
  const allocations = {
    samples,
    class: Uint32Array.of(0, 0),
    objects: Float64Array.of(1, 1),
  };
  const allocated = { bytes: 400, samples: 2, intervalBytes: 1, rate: 0, lost: 0, lostBytes: 0 };
  return { ...cpu, header: { ...cpu.header, allocated }, allocations };
}

const kindOf = (of: ReturnType<typeof withClasses>, node: number) =>
  of.header.kinds[of.frames.kind[of.nodes.frame[node]!]!];

describe('classes', () => {
  it('are a kind of their own, where there are any, and other code stays what it is', () => {
    const marked = withClasses(profile());
    expect([1, 2, 3, 4, 5].map((node) => kindOf(marked, node))).toEqual([
      'C2',
      'class',
      'interpreted',
      'class',
      'other',
    ]);
    expect(withClasses(marked)).toBe(marked);
    const without = { ...profile(), allocations: null };
    expect(withClasses(without)).toBe(without);
    expect(classKind(without.header)).toBe(-1);
  });

  it('spend nothing: what they have is that of the code below them', () => {
    const marked = withClasses(profile());
    const shown = measured(marked, { time: 'alloc', endpoint: null });
    const { shares, areClasses } = kindShares(shown, ALL.threads);
    const { kinds } = marked.header;
    expect(areClasses).toBe(true);
    expect(shares[kinds.indexOf('C2')]).toBeCloseTo(0.75);
    expect(shares[kinds.indexOf('interpreted')]).toBeCloseTo(0.25);
    expect(shares[kinds.indexOf('class')]).toBe(0);
  });

  it('without a stack belong to no kind of code', () => {
    const cpu = profileOf('byte[][other]');
    const samples = entriesOf({ time: [1], node: [1], weight: [5] });
    const allocations = { samples, class: Uint32Array.of(0), objects: Float64Array.of(1) };
    const marked = withClasses({ ...cpu, allocations });
    const { shares, areClasses } = kindShares({ ...marked, samples }, ALL.threads);
    expect(areClasses).toBe(true);
    expect(shares.every((share) => share === 0)).toBe(true);
  });
});
