// Findings of `dwell explain` that are in the page: whoever wrote the page may have put some in.
import type { Shared, View } from '../state/fragment';
import type { Time } from './measure';
import { plain } from './plain';
import type { Header } from './profile';

/** As the header holds it. */
export interface RawFinding {
  what: string;
  /** How much it costs, in words. */
  share: string;
  evidence: string;
  remedy: string;
  sure: string;
  /** `cpu`, `wall`, `safepoints` or `live`. */
  measure: string;
  causes: string[];
  endpoint: string | null;
}

export interface Finding extends Pick<RawFinding, 'what' | 'share' | 'evidence' | 'remedy'> {
  sure: string;
  cause: string;
  view: View;
  change: Partial<Shared>;
}

/** The findings with the place where the page shows them. */
export function findingsOf(header: Header): Finding[] {
  return header.findings.map((raw) => {
    const [cause = ''] = raw.causes;
    const time: Time =
      raw.measure === 'live'
        ? 'live'
        : raw.measure === 'cpu' || cause === 'running'
          ? 'cpu'
          : raw.causes.length === 1
            ? { cause }
            : raw.causes.length > 1
              ? 'off'
              : 'wall';
    return {
      what: plain(raw.what),
      share: plain(raw.share),
      evidence: plain(raw.evidence),
      remedy: plain(raw.remedy),
      sure: raw.sure === '' ? '' : `Confidence: ${plain(raw.sure)}`,
      cause: raw.measure === 'cpu' ? 'running' : cause,
      view: raw.measure === 'safepoints' ? 'safepoints' : 'flame',
      change: { measure: { time, endpoint: raw.endpoint } },
    };
  });
}
