// The packages that have a colour of their own, with their share of self time.
import { percent } from '../data/format';
import { shortened } from '../data/plain';
import { coloursOf } from '../flame/colours';
import { OTHERS_PAINT } from '../flame/packages';
import type { Store } from '../state/store';
import { theme } from '../state/theme';

export function PackageLegend({ store }: { store: Store }) {
  const { named } = store.packages.value;
  const { kinds } = coloursOf(theme.value);
  return (
    <ul class="legend of-diff" tabIndex={0} aria-label="Packages, by self time">
      {named.map(({ name, paint, share }) => (
        <li key={name}>
          <span class="swatch" style={{ background: kinds[paint]?.fill }} />
          {shortened(name, 50)} <span class="share">{percent(share)}</span>
        </li>
      ))}
      <li>
        <span class="swatch" style={{ background: kinds[OTHERS_PAINT]?.fill }} />
        others
      </li>
    </ul>
  );
}
