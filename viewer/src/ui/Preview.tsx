// View while the columns are read: findings and endpoints, from the header alone. Clicks have no
// effect until the overview replaces it.
import { findingsOf } from '../data/findings';
import { count, duration, plural, weight } from '../data/format';
import { plain, shortened } from '../data/plain';
import type { Header } from '../data/profile';
import { NO_ENDPOINT } from '../data/requests';
import { causeColour } from '../flame/causes';
import { theme } from '../state/theme';
import { mainClass } from './Head';
import { Lost } from './Lost';

/** As many as the overview shows at first. */
const FINDINGS = 3;
const TEXT_MAX = 600;

export function Preview({ header }: { header: Header }) {
  const { info, title } = header;
  const name = mainClass(info.javaArguments) || title || 'profile';
  const findings = findingsOf(header).slice(0, FINDINGS);
  const { latencies } = header;
  return (
    <>
      <header>
        <div class="head">
          <h1>
            <span class="brand">dwell</span> {shortened(plain(name), 80)}
          </h1>
          <p class="summary">{summary(header)}</p>
        </div>
      </header>
      <main aria-busy="true">
        <div class="page overview preview">
          <p class="weak" role="status">
            Reading the profile…
          </p>
          {findings.length > 0 && (
            <section>
              <h2>Findings, most costly first</h2>
              <ol class="findings">
                {findings.map((finding, i) => (
                  <li key={i} class="finding">
                    <Lost finding={finding} colour={causeColour(finding.cause, theme.value)} />
                    <span class="told">
                      <b>{shortened(finding.what, TEXT_MAX)}</b>
                      <span class="weak">{shortened(finding.share, TEXT_MAX)}</span>
                      <span class="remedy">
                        <b>Fix:</b> {shortened(finding.remedy, TEXT_MAX)}
                      </span>
                    </span>
                  </li>
                ))}
              </ol>
            </section>
          )}
          {latencies.length > 0 && (
            <section>
              <h2>Endpoints, slowest first</h2>
              <table class="rows endpoints">
                <thead>
                  <tr>
                    <th scope="col">Endpoint</th>
                    <th scope="col">Requests</th>
                    <th scope="col">p50</th>
                    <th scope="col">p95</th>
                  </tr>
                </thead>
                <tbody>
                  {latencies.map(({ endpoint, requests, p50Ns, p95Ns }, i) => (
                    <tr key={i}>
                      <th scope="row">{shortened(plain(endpoint ?? NO_ENDPOINT), 80)}</th>
                      <td>{count(requests)}</td>
                      <td>{duration(p50Ns)}</td>
                      <td>
                        <b>{duration(p95Ns)}</b>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </section>
          )}
        </div>
      </main>
    </>
  );
}

function summary({ samples, cpuNs, unit, info }: Header): string {
  const parts = [plural(samples, 'sample')];
  if (unit === 'ns') parts.push(weight(cpuNs, unit));
  if (info.durationNs > 0) parts.push(`in ${duration(info.durationNs)}`);
  return parts.join(' · ');
}
