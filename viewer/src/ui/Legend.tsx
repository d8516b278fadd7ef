// The kinds of code with their colours and their share of self time; a click steps one back.
import { percent } from '../data/format';
import { classKind, kindShares } from '../data/kinds';
import { coloursOf } from '../flame/colours';
import type { Store } from '../state/store';
import { theme } from '../state/theme';

export function Legend({ store }: { store: Store }) {
  const { shares, areClasses } = kindShares(store.shown.value, store.threads.value);
  const colours = coloursOf(theme.value);
  const off = store.off.value;
  const classes = classKind(store.profile.header);
  const used = usedKinds(store);
  return (
    <ul
      class="legend"
      aria-label={areClasses ? 'Kinds of code below the classes' : 'Kinds of code, by self time'}
    >
      {store.profile.header.kinds.map((label, kind) => {
        const isClass = kind === classes;
        if (isClass ? !areClasses : !used[kind]) return null;
        return (
          <li key={label}>
            <button
              type="button"
              class="quiet"
              aria-pressed={!off.has(kind)}
              title={
                isClass
                  ? 'class: shares are those of the code below; dim / highlight'
                  : `${label}: dim / highlight`
              }
              onClick={() => store.toggleKind(kind)}
            >
              <span
                class={kind === 8 ? 'swatch hatched' : 'swatch'}
                style={{ background: colours.kinds[kind]?.fill }}
              />
              {label} {!isClass && <span class="share">{percent(shares[kind] ?? 0)}</span>}
            </button>
          </li>
        );
      })}
    </ul>
  );
}

const used = new WeakMap<object, boolean[]>();

/** Which kinds any frame has. */
function usedKinds({ profile }: Store): boolean[] {
  let kinds = used.get(profile);
  if (!kinds) {
    kinds = profile.header.kinds.map(() => false);
    const { kind, method } = profile.frames;
    // No stack has the frames that stand for others until some are folded.
    const end = profile.standIns?.runtime ?? method.length;
    for (let frame = 0; frame < end; frame++) kinds[kind[frame]!] = true;
    used.set(profile, kinds);
  }
  return kinds;
}
