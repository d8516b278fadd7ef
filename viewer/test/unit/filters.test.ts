import { expect, test } from 'vitest';
import { allThreads } from '../../src/data/format';

test('all threads are counted, also those without samples', () => {
  expect(allThreads(42, 93)).toBe('All threads (93, 42 with samples)');
  expect(allThreads(93, 93)).toBe('All threads (93)');
});
