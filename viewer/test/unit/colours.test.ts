// Colours are readable and distinguishable, with any colour vision.
import { describe, expect, it } from 'vitest';
import { coloursOf, contrast, type Paint, type Theme } from '../../src/flame/colours';
import { distance, SIGHTS } from './sights';

describe.each<Theme>(['light', 'dark'])('colours of the %s theme', (theme) => {
  const colours = coloursOf(theme);

  it('have text that can be read on every fill', () => {
    const paints: Paint[] = [
      ...colours.kinds,
      ...colours.dimmed,
      colours.neutral,
      colours.neutralDimmed,
      colours.match,
    ];
    for (const { fill, text } of paints)
      expect(contrast(fill, text), fill).toBeGreaterThanOrEqual(4.5);
  });

  it.each(Object.entries(SIGHTS))('differ from each other for %s sight', (_name, sight) => {
    const fills = colours.kinds.map((paint) => paint.fill);
    for (let i = 0; i < fills.length; i++) {
      for (let j = 0; j < i; j++) {
        // About four times the smallest visible difference of adjacent colours.
        expect(distance(fills[i]!, fills[j]!, sight), `${fills[i]} ${fills[j]}`).toBeGreaterThan(
          0.08,
        );
      }
      expect(distance(fills[i]!, colours.background, sight), fills[i]).toBeGreaterThan(0.08);
    }
  });

  it('show matches apart from everything that did not match', () => {
    for (const sight of Object.values(SIGHTS)) {
      for (const { fill } of [...colours.dimmed, colours.neutralDimmed]) {
        expect(distance(fill, colours.match.fill, sight), fill).toBeGreaterThan(0.15);
      }
    }
  });
});
