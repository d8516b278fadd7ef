// What a finding costs, and a bar to compare it with the others.
import type { Finding } from '../data/findings';

export function Lost({ finding, colour }: { finding: Finding; colour: string }) {
  const { cost, bar } = finding;
  return (
    <span class="lost">
      <b>{cost}</b>
      {bar !== null && (
        <span class="lost-bar" aria-hidden="true">
          <span style={{ width: `${bar * 100}%`, background: colour }} />
        </span>
      )}
    </span>
  );
}
