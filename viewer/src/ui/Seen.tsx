// The self-check of endpoints: a cell next to the bar, and warnings below the table.
import type { Header } from '../data/profile';
import { count } from '../data/format';
import { shortened } from '../data/plain';
import { shownOf, totalOf, warningsOf } from '../data/selfCheck';

const TEXT_MAX = 600;
const WARNINGS_MAX = 5;

/** The self-check does not follow a time range: the head says so. */
export function SeenHead({ header, hasRange }: { header: Header; hasRange: boolean }) {
  if (!header.selfCheck) return null;
  return (
    <th
      scope="col"
      class="seen"
      title="Sampled wall time as a part of the latencies of the same requests, full recording"
    >
      {hasRange ? 'Seen, full recording' : 'Seen'}
    </th>
  );
}

export function SeenCell({ header, endpoint }: { header: Header; endpoint: string | null }) {
  if (!header.selfCheck) return null;
  const shown = shownOf(header, endpoint);
  if (!shown) return <td class="seen" />;
  const { text, isOff, mark, title } = shown;
  return (
    <td class={isOff ? 'seen off' : 'seen'} title={shortened(title, TEXT_MAX)}>
      {text}
      {mark !== '' && (
        <span role="img" aria-label={isOff ? 'does not agree' : 'has a reason'}>
          {' '}
          {mark}
        </span>
      )}
    </td>
  );
}

export function SelfCheckNote({ header, hasRange }: { header: Header; hasRange: boolean }) {
  if (header.endpointsNote) return <p class="weak">{header.endpointsNote}</p>;
  const total = totalOf(header, hasRange);
  if (total === '') return null;
  const warnings = warningsOf(header);
  const more = warnings.length - WARNINGS_MAX;
  return (
    <div class="self-check">
      <p class="weak">{shortened(total, TEXT_MAX)}</p>
      {warnings.slice(0, WARNINGS_MAX).map((warning, i) => (
        <p key={i} class="off">
          ⚠ {shortened(warning, TEXT_MAX)}
        </p>
      ))}
      {more > 0 && <p class="weak">and the same for {count(more)} more</p>}
    </div>
  );
}
