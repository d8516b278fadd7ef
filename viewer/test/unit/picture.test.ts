// The legend of a saved picture.
import { describe, expect, it } from 'vitest';
import { placesOf } from '../../src/flame/picture';

describe('the legend of a picture', () => {
  it('goes on in the next line where it has no room', () => {
    expect(placesOf([40, 50, 20, 200], 100)).toEqual([
      { x: 0, line: 0 },
      { x: 40, line: 0 },
      { x: 0, line: 1 },
      // Too wide for any line, but still there.
      { x: 0, line: 2 },
    ]);
  });
});
