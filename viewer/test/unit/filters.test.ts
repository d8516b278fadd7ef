import { expect, test } from 'vitest';
import { withSamples } from '../../src/data/format';

test('all threads are counted, also those without samples', () => {
  expect(withSamples(42, 93)).toBe('42 of 93 threads have samples');
});
