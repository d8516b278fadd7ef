// Title, subject and reliability of the profile.
import { sumsOf } from '../data/facts';
import { CPU_TIME, duration, percent, plural, weight } from '../data/format';
import { plain, shortened } from '../data/plain';
import type { Profile } from '../data/profile';
import type { Store } from '../state/store';
import { contrastful, theme, toggleTheme } from '../state/theme';
import { toggleDialog } from './commands';
import { copy } from './copy';

export function Head({ store }: { store: Store }) {
  const { profile } = store;
  const { info, title } = profile.header;
  const name = mainClass(info.javaArguments) || title || 'profile';
  return (
    <div class="head">
      <h1>
        <span class="brand">dwell</span> {shortened(plain(name), 80)}
      </h1>
      <p class="summary">{summary(profile).join(' · ')}</p>
      <div class="group">
        <button
          type="button"
          class="quiet"
          title="Link to this view with all its settings"
          onClick={() => void copy(store, 'the link', linkTo(store))}
        >
          Copy link
        </button>
        <button
          type="button"
          class="quiet"
          aria-pressed={theme.value === 'dark'}
          title="Key d"
          onClick={toggleTheme}
        >
          Dark
        </button>
        <button
          type="button"
          class="quiet"
          aria-pressed={contrastful.value}
          title="Key h"
          onClick={() => (contrastful.value = !contrastful.value)}
        >
          Contrast
        </button>
        <button type="button" class="quiet" title="Key ?" onClick={() => toggleDialog('help')}>
          Help
        </button>
      </div>
    </div>
  );
}

/** The page's address with what is chosen, which the address bar may have a moment later. */
function linkTo(store: Store): string {
  const { fragment } = store;
  return location.href.replace(/#.*$/, '') + (fragment === '' ? '' : `#${fragment}`);
}

/** The main class, or the jar's name without its folder. */
export function mainClass(javaArguments: string): string {
  const first = javaArguments.split(/\s/, 1)[0] ?? '';
  return first.endsWith('.jar') ? first.slice(first.lastIndexOf('/') + 1) : first;
}

function summary(profile: Profile): string[] {
  const { info, unit, losses } = profile.header;
  const sums = sumsOf(profile);
  const parts = [plural(sums.samples, 'sample')];
  const isCpu = (profile.header.measured ?? CPU_TIME) === CPU_TIME;
  if (unit === 'ns') parts.push(weight(sums.weight, unit) + (isCpu ? ' of CPU' : ''));
  if (info.durationNs > 0) parts[parts.length - 1] += ` in ${duration(info.durationNs)}`;
  if (sums.failed > 0) parts.push(`${percent(sums.failed / sums.weight)} of stacks failed`);
  const lost = losses.reduce((lost, loss) => lost + loss.samples, 0);
  if (lost > 0) parts.push(`${plural(lost, 'sample')} lost`);
  return parts;
}
