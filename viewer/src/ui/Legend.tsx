// The kinds of code with their colours and their share of self time; a click steps one back.
import { percent } from '../data/format';
import { coloursOf } from '../flame/colours';
import type { Store } from '../state/store';
import { theme } from '../state/theme';

export function Legend({ store }: { store: Store }) {
  const shares = kindShares(store);
  const colours = coloursOf(theme.value);
  const off = store.off.value;
  return (
    <ul class="legend" aria-label="Kinds of code, by self time">
      {store.profile.header.kinds.map((label, kind) => {
        const share = shares[kind] ?? 0;
        if (!usedKinds(store)[kind]) return null;
        return (
          <li key={label}>
            <button
              type="button"
              class="quiet"
              aria-pressed={!off.has(kind)}
              title={`${label}: step back or bring forward`}
              onClick={() => store.toggleKind(kind)}
            >
              <span
                class={kind === 8 ? 'swatch hatched' : 'swatch'}
                style={{ background: colours.kinds[kind]?.fill }}
              />
              {label} <span class="share">{percent(share)}</span>
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
    for (const kind of profile.frames.kind) kinds[kind] = true;
    used.set(profile, kinds);
  }
  return kinds;
}

/** Self time by kind, of the chosen threads. */
function kindShares(store: Store): number[] {
  const profile = store.shown.value;
  const threads = store.threads.value;
  const sums = profile.header.kinds.map(() => 0);
  const { thread, node, weight } = profile.samples;
  let all = 0;
  for (let i = 0; i < node.length; i++) {
    if (!threads[thread[i]!]) continue;
    all += weight[i]!;
    if (node[i] === 0) continue;
    sums[profile.frames.kind[profile.nodes.frame[node[i]!]!]!]! += weight[i]!;
  }
  return sums.map((sum) => (all > 0 ? sum / all : 0));
}
