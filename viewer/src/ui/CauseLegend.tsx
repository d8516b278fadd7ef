// Causes of the visible frames, with their shares.
import { percent } from '../data/format';
import { plain, shortened } from '../data/plain';
import { causesOf } from '../data/wall';
import { causeColour, causeWords } from '../flame/causes';
import type { Store } from '../state/store';
import { theme } from '../state/theme';

export function CauseLegend({ store }: { store: Store }) {
  const { samples } = store.shown.value;
  const threads = store.threads.value;
  const causes = causesOf(store.profile);
  const sums = new Float64Array(causes.length);
  let all = 0;
  for (let i = 0; i < samples.node.length; i++) {
    if (!threads[samples.thread[i]!]) continue;
    sums[samples.wait[i]!]! += samples.weight[i]!;
    all += samples.weight[i]!;
  }
  const shown = causes.map((cause, i) => ({ cause, share: sums[i]! / (all || 1) }));
  shown.sort((a, b) => b.share - a.share);
  return (
    <ul class="legend of-diff" tabIndex={0} aria-label="Main cause of each frame's time, by share">
      {shown
        .filter(({ share }) => share > 0)
        .map(({ cause, share }) => (
          <li key={cause} title={plain(causeWords(cause))}>
            <span class="swatch" style={{ background: causeColour(cause, theme.value) }} />
            {shortened(plain(cause), 40)} <span class="share">{percent(share)}</span>
          </li>
        ))}
    </ul>
  );
}
