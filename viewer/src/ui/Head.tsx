// Title, what the profile is of, and how much of it can be trusted.
import { duration, percent, plural, weight } from '../data/format';
import { plain, shortened } from '../data/plain';
import { type Profile, hasWall } from '../data/profile';
import type { Store } from '../state/store';
import { toggleDialog } from './commands';

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
      {hasWall(profile.header) && (
        <button type="button" class="quiet" onClick={() => toggleDialog('wall')}>
          Wall time…
        </button>
      )}
      <button type="button" class="quiet" onClick={() => toggleDialog('recording')}>
        Recording…
      </button>
    </div>
  );
}

/** The main class, or the jar's name without its folder. */
function mainClass(javaArguments: string): string {
  const first = javaArguments.split(/\s/, 1)[0] ?? '';
  return first.endsWith('.jar') ? first.slice(first.lastIndexOf('/') + 1) : first;
}

export interface Sums {
  weight: number;
  samples: number;
  failed: number;
}

export function sumsOf(profile: Profile): Sums {
  const sums = { weight: 0, samples: profile.samples.node.length, failed: 0 };
  const { weight, cause } = profile.samples;
  for (let i = 0; i < weight.length; i++) {
    sums.weight += weight[i]!;
    if (cause[i] !== 0) sums.failed += weight[i]!;
  }
  return sums;
}

function summary(profile: Profile): string[] {
  const { info, unit, losses } = profile.header;
  const sums = sumsOf(profile);
  const parts = [plural(sums.samples, 'sample')];
  if (unit === 'ns') parts.push(weight(sums.weight, unit));
  if (info.durationNs > 0) parts.push(`in ${duration(info.durationNs)}`);
  if (sums.failed > 0) parts.push(`${percent(sums.failed / sums.weight)} of stacks failed`);
  const lost = losses.reduce((lost, loss) => lost + loss.samples, 0);
  if (lost > 0) parts.push(`${plural(lost, 'sample')} lost`);
  return parts;
}
