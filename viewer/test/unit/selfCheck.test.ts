// What the page says of wall time against latencies.
import { describe, expect, it } from 'vitest';
import type { Header } from '../../src/data/profile';
import { type EndpointCheck, shownOf, totalOf, warningsOf } from '../../src/data/selfCheck';
import { profileOf } from './art';

function check(endpoint: string | null, ratio: number, note: string | null = null): EndpointCheck {
  const isOff = note !== null;
  const agreement = isOff ? 'low' : 'close';
  const [seenNs, latencyNs, standardError] = [ratio * 1e9, 1e9, 0.031];
  return { endpoint, seenNs, latencyNs, ratio, standardError, agreement, isOff, note };
}

function header(endpoints: EndpointCheck[], total = check(null, 0.97)): Header {
  return { ...profileOf('a.A.x').header, selfCheck: { total, endpoints } };
}

describe('the self-check', () => {
  it('is shown by endpoint, with its error', () => {
    const all = header([check('GET /a', 0.984), check(null, 1)]);
    expect(shownOf(all, 'GET /a')).toEqual({
      text: '0.98',
      isOff: false,
      mark: '',
      title: 'Sampled wall time in the full recording: 0.98 ± 0.03 of the latencies',
    });
    expect(shownOf(all, null)?.text).toBe('1.00');
    expect(shownOf(all, 'GET /b')).toBe(null);
    expect(totalOf(all)).toContain('0.97 ± 0.03 of the latencies of 2 endpoints');
    expect(totalOf(all, true)).toMatch(/^Self-check of the full recording: /);
    expect(warningsOf(all)).toEqual([]);
  });

  it('tells what is off, in plain text', () => {
    const all = header([check('a', 0.4, 'too few\u202e\u001b[2J'), check('b', 1)]);
    expect(shownOf(all, 'a')).toEqual({
      text: '0.40',
      isOff: true,
      mark: '\u26a0',
      title: 'too few\ufffd\ufffd[2J',
    });
    expect(warningsOf(all)).toEqual(['too few\ufffd\ufffd[2J']);
  });

  it('marks what has a reason', () => {
    const row = { ...check('a', 1.9, 'on several'), isOff: false, agreement: 'several-threads' };
    const all = header([row], row);
    expect(shownOf(all, 'a')).toMatchObject({ isOff: false, mark: '~', title: 'on several' });
    expect(warningsOf(all)).toEqual([]);
    expect(totalOf(all)).toMatch(/^Self-check: .* of the latencies of a\.$/);
  });

  it('tells of all endpoints only where no single one is off', () => {
    const total = check(null, 0.7, 'all are low');
    expect(warningsOf(header([check('a', 0.7)], total))).toEqual(['all are low']);
    expect(warningsOf(header([check('a', 0.7, 'a is low')], total))).toEqual(['a is low']);
  });

  it('says nothing where there is nothing to compare', () => {
    const none: Header = { ...header([]), selfCheck: null };
    expect([shownOf(none, 'a'), totalOf(none), warningsOf(none)]).toEqual([null, '', []]);
    const { selfCheck: _, ...older } = none;
    expect(totalOf(older)).toBe('');
  });
});
