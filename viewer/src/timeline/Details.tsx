// The chosen step of the timeline: its stack, and the activity of the lock's holder at that time.
import { duration, plural } from '../data/format';
import { monitorWaits } from '../data/locked';
import { isInside } from '../data/locks';
import { plain, shortened } from '../data/plain';
import { endpointName } from '../data/requests';
import { causeColour, causeWords } from '../flame/causes';
import type { Store } from '../state/store';
import { theme } from '../state/theme';
import { threadName } from '../tree/keys';
import { StackLines } from '../ui/Stack';
import { Swatch } from '../ui/Split';
import type { Chosen, TimelineController } from './controller';
import { isSameWait, standsFor, stepOf } from './describe';
import { laneOfThread } from './lanes';
import { NEAR_NS } from './tracks';

const NAME_MAX = 100;

export function Details({ controller }: { controller: TimelineController }) {
  const { store, chosen } = controller;
  const current = chosen.value;
  if (!current) return null;
  const { profile } = store;
  const step = stepOf(profile, current);
  const name = shortened(threadName(profile, current.thread), NAME_MAX);
  return (
    <section class="chosen" aria-label="What was chosen" tabIndex={0}>
      <div class="beside">
        <div>
          <h2>
            <Swatch colour={causeColour(step.cause, theme.value)} />
            {name}: {plain(causeWords(step.cause))}
          </h2>
          <p class="weak">
            at {duration(step.time)}
            {step.duration > 0 && `, for ${duration(step.duration)}`}
            {step.what === 'wait' ? ', exact' : `, ${plural(step.count, step.what)}`}
            {step.detail !== '' && `, on ${shortened(plain(step.detail), NAME_MAX)}`}
            {step.endpoint > 0 &&
              `, for ${shortened(plain(endpointName(profile, step.endpoint)), NAME_MAX)}`}
          </p>
          {standsFor(step) !== '' && <p class="weak">Stands for {standsFor(step)}.</p>}
          <AllWaits store={store} thread={current.thread} />
          <StackLines profile={profile} node={step.node} label={`Stack of ${name}`} />
        </div>
        {step.owner >= 0 && <Owner controller={controller} chosen={current} />}
      </div>
      <p class="actions">
        {step.request > 0 && (
          <button type="button" onClick={() => store.go('requests', { request: step.request })}>
            Show request
          </button>
        )}
        <button type="button" onClick={() => controller.choose(null)}>
          Close
        </button>
      </p>
    </section>
  );
}

/** All waits of a thread for monitors that the filters take. */
function AllWaits({ store, thread }: { store: Store; thread: number }) {
  const rows = monitorWaits(store.profile, store.filter.value, thread);
  if (rows.waits === 0) return null;
  return (
    <p class="weak">
      All waits of this thread for monitors: {plural(rows.waits, 'wait')}, {duration(rows.ns)} in
      all, the longest {duration(rows.longest)}.
    </p>
  );
}

/** Holder of the lock that the thread waited for. */
function Owner({ controller, chosen }: { controller: TimelineController; chosen: Chosen }) {
  const { profile } = controller.store;
  const step = stepOf(profile, chosen);
  const name = shortened(threadName(profile, step.owner), NAME_MAX);
  // If the holder did not also wait, it ran: its nearest sample is shown.
  const meanwhile = controller.stepOf(step.owner, chosen.at, NEAR_NS);
  const nearest = meanwhile && stepOf(profile, meanwhile);
  // A sample outside of the lock, or in a wait for it, is of a time when the thread did not hold it.
  const holds =
    nearest &&
    !isSameWait(step, nearest) &&
    isInside(profile, nearest.node, step.node, step.detail);
  const seen = holds ? nearest : null;
  const node = step.ownerNode >= 0 ? step.ownerNode : (seen?.node ?? 0);
  // It may have been elsewhere at that time, so its activity is shown only for the visible stack.
  const isSame = seen?.node === node;
  return (
    <div>
      <h2>
        Held by {name}
        {seen && isSame && `, ${plain(causeWords(seen.cause))}`}
      </h2>
      <p class="weak">
        {step.ownerNode >= 0
          ? 'where it was while the other one waited'
          : seen
            ? 'nearest sample'
            : `no sample inside the lock within ${duration(NEAR_NS)}`}{' '}
        <button
          type="button"
          class="quiet link"
          onClick={() => {
            controller.unfold(step.owner);
            controller.showLane(laneOfThread(controller.lanes.value, step.owner));
          }}
        >
          go to its lane
        </button>
      </p>
      {node !== 0 && (
        <StackLines profile={profile} node={node} label={`Stack of the holder, ${name}`} />
      )}
    </div>
  );
}
