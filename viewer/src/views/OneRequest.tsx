// One request: the spans of its trace as bars, and below each what its threads did for it.
import { useComputed } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { duration, plural } from '../data/format';
import { plain, shortened } from '../data/plain';
import type { Span } from '../data/profile';
import { endpointName, spanOf, traceOf, type Work } from '../data/requests';
import { type SpanBar, spansOf } from '../data/spans';
import { sum, wholeSpan } from '../data/wall';
import { causeColour } from '../flame/causes';
import type { Store } from '../state/store';
import { theme } from '../state/theme';
import { around } from '../timeline/time';
import { threadName } from '../tree/keys';
import { CauseLegend, inWords, partsOf } from '../ui/Split';

const NAME_MAX = 120;
const SPANS_MAX = 60;
const THREADS_MAX = 60;

export function nameOf({ profile }: Store, request: number): string {
  const name = endpointName(profile, profile.requests.endpoint[request - 1] ?? 0);
  return shortened(plain(name), NAME_MAX);
}

export function OneRequest({ store, causes }: { store: Store; causes: readonly string[] }) {
  const { profile } = store;
  const request = store.request.value;
  const spans = useComputed(() => spansOf(profile, store.request.value));
  const section = useRef<HTMLElement>(null);
  useEffect(() => section.current?.scrollIntoView({ block: 'nearest' }), [request]);
  const span = spanOf(profile, request);
  if (!span) return null;
  const trace = traceOf(profile, request);
  const work = spans.value.flatMap(({ work }) => work);
  const seen = causes.filter((_, i) => work.some(({ split }) => split[i]! > 0));
  return (
    <section ref={section} aria-labelledby="one-request" class="one-request">
      <h2 id="one-request">
        {nameOf(store, request)}: {duration(span.to - span.from)} at {duration(span.from)}
      </h2>
      {trace !== '' && <p class="weak">Trace {trace}</p>}
      <Actions store={store} request={request} span={span} />
      {work.length === 0 && <p class="weak">No sample shows a thread working for this request.</p>}
      <ul class="over-threads">
        {spans.value.slice(0, SPANS_MAX).map((bar, i) => (
          <SpanRows key={i} store={store} bar={bar} whole={span} causes={causes} />
        ))}
      </ul>
      {spans.value.length > SPANS_MAX && (
        <p class="weak">and {plural(spans.value.length - SPANS_MAX, 'more span')}</p>
      )}
      {spans.value.some(({ isTold }) => !isTold) && (
        <p class="weak">
          Times with ~ were not recorded: such a bar goes from the first to the last sample of that
          span. Short spans without a sample are missing.
        </p>
      )}
      {seen.length > 0 && <CauseLegend causes={seen} />}
    </section>
  );
}

function Actions({ store, request, span }: { store: Store; request: number; span: Span }) {
  const inSight = around(span, 0.1, wholeSpan(store.profile));
  return (
    <p class="actions">
      <button
        type="button"
        onClick={() => store.go('timeline', { request, sight: inSight, onlyRequest: false })}
      >
        Show in the timeline
      </button>
      <button
        type="button"
        onClick={() =>
          store.go('flame', {
            request,
            onlyRequest: true,
            versus: false,
            measure: { time: 'wall', endpoint: null },
          })
        }
      >
        Flame graph of this request
      </button>
      <button type="button" onClick={() => (store.request.value = 0)}>
        Close
      </button>
    </p>
  );
}

/** A span's bar, and a row for each of its threads. */
function SpanRows(props: { store: Store; bar: SpanBar; whole: Span; causes: readonly string[] }) {
  const { store, bar, whole, causes } = props;
  const { kind, id, from, to, isTold, work } = bar;
  const took = `${isTold ? '' : '~ '}${duration(to - from)} at ${duration(from - whole.from)} of it`;
  const names = { request: 'request', inner: `span ${id}`, other: nameOf(store, bar.request) };
  return (
    <>
      <li class="of-span">
        {kind === 'other' ? (
          <button
            type="button"
            class="quiet link name"
            onClick={() => (store.request.value = bar.request)}
          >
            {names.other}
          </button>
        ) : (
          <span class="name">{names[kind]}</span>
        )}
        <div class="track" role="img" aria-label={`${names[kind]}: ${took}`} title={took}>
          <Bar whole={whole} from={from} to={to} colour="var(--accent)" />
        </div>
        <span class="weak">{kind === 'request' ? duration(to - from) : took}</span>
      </li>
      {work.slice(0, THREADS_MAX).map((of) => (
        <ThreadRow key={of.thread} store={store} work={of} whole={whole} causes={causes} />
      ))}
      {work.length > THREADS_MAX && (
        <li class="weak">and {plural(work.length - THREADS_MAX, 'more thread')}</li>
      )}
    </>
  );
}

function ThreadRow(props: { store: Store; work: Work; whole: Span; causes: readonly string[] }) {
  const { store, work, whole, causes } = props;
  const { thread, split, steps } = work;
  const words = inWords(partsOf(causes, split), sum(split));
  return (
    <li class="of-thread">
      <span class="name">{shortened(threadName(store.profile, thread), 60)}</span>
      <div class="track" role="img" aria-label={words} title={words}>
        {steps.map((step, i) => (
          <Bar
            key={i}
            whole={whole}
            from={step.from}
            to={step.to}
            colour={causeColour(causes[step.cause]!, theme.value)}
          />
        ))}
      </div>
      <span class="weak">{words}</span>
    </li>
  );
}

/** A part of a track, cut to the request. */
function Bar(props: { whole: Span; from: number; to: number; colour: string }) {
  const { whole, colour } = props;
  const length = whole.to - whole.from;
  const from = Math.max(0, (props.from - whole.from) / length);
  const to = Math.min(1, (props.to - whole.from) / length);
  if (to <= from) return null;
  const width = Math.max(0.1, (to - from) * 100);
  return <span style={{ left: `${from * 100}%`, width: `${width}%`, background: colour }} />;
}
