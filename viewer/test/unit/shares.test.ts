import { describe, expect, it } from 'vitest';
import { few } from '../../src/data/format';
import { errorOfShare, sharesOf, shareText } from '../../src/data/shares';
import { partsOfName } from '../../src/ui/Breakable';

describe('the error of a share', () => {
  it('is that of the binomial where all weigh the same', () => {
    // 30 of 40 samples: each sum has as much variance as samples.
    const error = errorOfShare({ value: 30, variance: 30 }, { value: 10, variance: 10 });
    expect(error).toBeCloseTo(Math.sqrt((0.75 * 0.25) / 40), 12);
  });

  it('is small where nearly all is one, however uncertain the sum', () => {
    const error = errorOfShare(
      { value: 979, variance: 139 ** 2 },
      { value: 21, variance: 21 ** 2 },
    );
    // By hand: sqrt(0.021^2 * 139^2 + 0.979^2 * 21^2) / 1000.
    expect(error).toBeCloseTo(0.0207652, 7);
    expect(error).toBeLessThan(139 / 1000 / 6);
  });

  it('is the same for a part and for the rest, as both make up the whole', () => {
    const [x, y] = [
      { value: 7, variance: 4 },
      { value: 13, variance: 25 },
    ];
    expect(errorOfShare(x, y)).toBeCloseTo(errorOfShare(y, x), 12);
  });

  it('comes of the others where the part itself is exact', () => {
    const error = errorOfShare({ value: 1, variance: 0 }, { value: 1, variance: 1 });
    expect(error).toBeCloseTo(0.25, 12);
  });

  it('is none of nothing, and none of all', () => {
    const some = { value: 5, variance: 25 };
    const none = { value: 0, variance: 0 };
    expect(errorOfShare(some, none)).toBe(0);
    expect(errorOfShare(none, some)).toBe(0);
    expect(errorOfShare(none, none)).toBe(0);
  });
});

describe('shares of a table', () => {
  it('add up to one, each with the error against all others', () => {
    const parts = [
      { value: 60, error: 6 },
      { value: 30, error: 3 },
      { value: 10, error: 0 },
    ];
    const shares = sharesOf(parts);
    expect(shares.map(({ share }) => share)).toEqual([0.6, 0.3, 0.1]);
    const expected = errorOfShare({ value: 60, variance: 36 }, { value: 40, variance: 9 });
    expect(shares[0]!.error).toBeCloseTo(expected, 12);
    expect(sharesOf([])).toEqual([]);
    expect(sharesOf([{ value: 0, error: 0 }])).toEqual([{ share: 0, error: 0 }]);
  });

  it('are told with the error in points of a percentage', () => {
    expect(shareText({ share: 0.979, error: 0.0207 })).toBe('97.9\u00a0% ±2.1');
    expect(shareText({ share: 0.0004, error: 0.0002 })).toBe('0.04\u00a0% ±0.02');
  });
});

describe('small numbers', () => {
  it('are 0 only where there is nothing', () => {
    const shown = [0, 1e-9, 0.000_123, 0.0096, 0.04, 0.05, 0.94, 1, 9.94, 9.96, 123.4].map(few);
    expect(shown).toEqual([
      ...['0', 'less than 0.000001', '0.0001', '0.010', '0.04'],
      ...['0.1', '0.9', '1.0', '9.9', '10', '123'],
    ]);
  });
});

describe('long names', () => {
  it('are broken behind the marks that part them', () => {
    const parts = partsOfName('java/util.concurrent.Map$Node[]');
    expect(parts).toEqual(['java/', 'util.', 'concurrent.', 'Map$', 'Node[]']);
    expect(partsOfName('int[]')).toEqual(['int[]']);
    expect(partsOfName('a.B$$Lambda/0x1').join('')).toBe('a.B$$Lambda/0x1');
  });
});
