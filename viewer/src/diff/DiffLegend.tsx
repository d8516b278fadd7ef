// What the colours and signs of a comparison mean.
import type { Store } from '../state/store';
import { contrastful, theme } from '../state/theme';
import { diffColours } from './colours';

export function DiffLegend({ store }: { store: Store }) {
  const sides = store.sides.value;
  if (!sides) return null;
  const [a, b] = sides.names;
  const { none, more, less } = diffColours(theme.value, contrastful.value);
  const entries: readonly [string, string][] = [
    [less[3]!.fill, `▼ far less in ${b} than in ${a}`],
    [less[1]!.fill, '▼ less'],
    [none.fill, 'within sampling noise'],
    [more[1]!.fill, '▲ more'],
    [more[3]!.fill, `▲ far more in ${b}`],
  ];
  return (
    <ul class="legend of-diff" tabIndex={0} aria-label="Colours of differences">
      {entries.map(([fill, words]) => (
        <li key={words}>
          <span class="swatch" style={{ background: fill }} /> {words}
        </li>
      ))}
      <li>✚ only in {b}</li>
      <li>✖ only in {a}</li>
    </ul>
  );
}
