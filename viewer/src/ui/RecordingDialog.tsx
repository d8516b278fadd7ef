// Everything the recording says about itself: where, how, what failed, what was lost, what it cost.
import { count, duration, percent, plural, weight } from '../data/format';
import { plain, shortened } from '../data/plain';
import type { Profile } from '../data/profile';
import type { Store } from '../state/store';
import { Dialog } from './Dialog';
import { sumsOf } from './Head';

const TEXT_MAX = 600;
/** Rows of one sort, where a recording can have many. */
const ROWS_MAX = 20;

export function RecordingDialog({ store }: { store: Store }) {
  return (
    <Dialog name="recording" title="Recording">
      <Facts profile={store.profile} />
    </Dialog>
  );
}

function Facts({ profile }: { profile: Profile }) {
  const rows = [
    ...origin(profile),
    ...quality(profile),
    ...cost(profile),
    ...profile.header.warnings.map((warning): Row => ['Warning', warning]),
  ];
  return (
    <table class="facts">
      <tbody>
        {rows
          .filter(([, value]) => value !== '')
          .map(([label, value], index) => (
            <tr key={index}>
              <th scope="row">{label}</th>
              <td>{shortened(plain(value), TEXT_MAX)}</td>
            </tr>
          ))}
      </tbody>
    </table>
  );
}

type Row = [label: string, value: string];

function origin({ header }: Profile): Row[] {
  const { info } = header;
  const started = info.startMs > 0 ? new Date(info.startMs).toISOString() : '';
  return [
    ['File', header.title],
    ['Command', info.javaArguments],
    ['Process', info.pid > 0 ? String(info.pid) : ''],
    ['JVM', `${info.jvmName} ${info.jvmVersion}`.trim()],
    ['Started', started],
    ['Duration', info.durationNs > 0 ? duration(info.durationNs) : ''],
    ['Measured', info.mode],
    ['Engine', info.engine + (info.engineReason ? ` (${info.engineReason})` : '')],
    ['Interval', info.intervalNs > 0 ? duration(info.intervalNs) : ''],
    ['Options', info.options],
    ['Profiler', info.profilerVersion],
    ['Event', info.sampleEvent],
    ...info.otherEvents.map(([name, samples]): Row => [
      'Not shown',
      `${plural(samples, 'sample')} of ${name}`,
    ]),
  ];
}

function quality(profile: Profile): Row[] {
  const { header } = profile;
  const sums = sumsOf(profile);
  const rows: Row[] = [['Samples', count(sums.samples)]];
  if (header.unit === 'ns') rows.push(['Weight', weight(sums.weight, header.unit)]);
  // Weights of wall time have nothing to do with the CPU time used.
  if (header.cpuUse && (header.info.mode === '' || header.info.mode === 'cpu')) {
    const used = header.cpuUse.userNs + header.cpuUse.systemNs;
    const seen = used > 0 ? `, of which the samples weigh ${percent(sums.weight / used)}` : '';
    rows.push(['CPU time used', duration(used) + seen]);
  }
  const roles = sumBy(profile, profile.samples.role, header.roles.length);
  const shares = header.roles
    .map((role, i) => ({ role, share: roles[i]! / (sums.weight || 1) }))
    // Others sample Java threads only: no GC among them does not mean that there was none.
    .filter(({ share }) => share > 0 || header.info.profilerVersion !== '')
    .map(({ role, share }) => `${role} ${percent(share)}`);
  rows.push(['Spent by', shares.join(', ')]);
  const causes = sumBy(profile, profile.samples.cause, header.causes.length + 1);
  header.causes.slice(0, ROWS_MAX).forEach((cause, i) => {
    rows.push(['Failed', `${percent(causes[i + 1]! / (sums.weight || 1))} ${cause}`]);
  });
  for (const loss of header.losses) {
    const weight = loss.weightNs > 0 ? `, ${duration(loss.weightNs)}` : '';
    const lost = `${plural(loss.samples, 'sample')}${weight}: ${loss.cause}`;
    if (loss.samples > 0) rows.push(['Lost', lost]);
  }
  for (const gap of header.gaps.slice(0, ROWS_MAX)) {
    rows.push(['Gap', `${duration(gap.durationNs)} at ${duration(gap.timeNs)}: ${gap.cause}`]);
  }
  return rows;
}

function sumBy(profile: Profile, group: ArrayLike<number>, groups: number): Float64Array {
  const sums = new Float64Array(groups);
  const { weight } = profile.samples;
  for (let i = 0; i < weight.length; i++) sums[group[i]!]! += weight[i]!;
  return sums;
}

function cost({ header }: Profile): Row[] {
  const cost = header.selfCost;
  if (!cost) return [];
  const ns = (name: string) => duration(cost[name] ?? 0);
  const mib = (name: string) => `${((cost[name] ?? 0) / 2 ** 20).toFixed(1)} MiB`;
  // Recordings of earlier versions do not have them.
  const has = (name: string) => (cost[name] ?? 0) > 0;
  return [
    ['Profiler’s CPU', ns('agentCpuNs')],
    [
      'In the handler',
      `median ${ns('handlerP50Ns')}, p99 ${ns('handlerP99Ns')}, longest ${ns('handlerMaxNs')}`,
    ],
    ['Stacks walked', count(cost['walks'] ?? 0) + (has('walkNs') ? `, ${ns('walkNs')}` : '')],
    ['Stacks copied', has('copies') ? `${count(cost['copies']!)}, ${mib('copiedBytes')}` : ''],
    ['Waited to be walked', has('waitedNs') ? ns('waitedNs') : ''],
    ['Collections waited for walks', has('collectionsWaitedNs') ? ns('collectionsWaitedNs') : ''],
    ['Samples dropped', count(cost['dropped'] ?? 0)],
    ['Memory', mib('memoryBytes')],
  ];
}
