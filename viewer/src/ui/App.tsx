// The page: head, tabs, filters, one of the views, legend.
import { useEffect } from 'preact/hooks';
import { CallTreeView } from '../calltree/CallTreeView';
import { FlameView } from '../flame/FlameView';
import { holdersWords } from '../data/locks';
import type { View } from '../state/fragment';
import type { Store } from '../state/store';
import { TableView } from '../table/TableView';
import { TimelineView } from '../timeline/TimelineView';
import { DiffBar } from '../diff/DiffBar';
import { DiffLegend } from '../diff/DiffLegend';
import { DiffTable } from '../diff/DiffTable';
import { Compare } from '../views/Compare';
import { Locks } from '../views/Locks';
import { Overview } from '../views/Overview';
import { Requests } from '../views/Requests';
import { Safepoints } from '../views/Safepoints';
import { SandwichView } from '../flame/SandwichView';
import { Breadcrumbs } from './Breadcrumbs';
import { CauseLegend } from './CauseLegend';
import { moreTools, onKey } from './commands';
import { Filters, More, RangeLine } from './Filters';
import { FrameDialog } from './FrameDialog';
import { FrameMenu } from './FrameMenu';
import { Head } from './Head';
import { HelpDialog } from './HelpDialog';
import { Legend } from './Legend';
import { PackageLegend } from './PackageLegend';
import { PANEL_ID, tabId, Tabs } from './Tabs';
import { ThreadsDialog } from './ThreadsDialog';
import { Toolbar } from './Toolbar';
import { Transforms } from './Transforms';

/** Views of stacks: they have tools and a legend of their own. */
const OF_STACKS: readonly View[] = ['flame', 'table', 'tree'];

export function App({ store }: { store: Store }) {
  useEffect(() => {
    const listener = (event: KeyboardEvent) => onKey(store, event);
    document.addEventListener('keydown', listener);
    return () => document.removeEventListener('keydown', listener);
  }, [store]);
  const view = store.view.value;
  const isOfStacks = OF_STACKS.includes(view);
  const isAround = view === 'flame' && store.around.value !== '';
  return (
    <>
      <header>
        <Head store={store} />
        <Tabs store={store} />
        <div class={`tools ${isOfStacks ? 'of-stacks' : ''} ${moreTools.value ? 'open' : ''}`}>
          <Filters store={store} />
          {isOfStacks ? <Toolbar store={store} /> : <More />}
        </div>
        <RangeLine store={store} view={view} hasBar={isOfStacks || view === 'overview'} />
        {isOfStacks && <Holders store={store} />}
        {isOfStacks && <Transforms store={store} />}
        {isOfStacks && <DiffBar store={store} />}
        {isOfStacks && view !== 'table' && !isAround && <Breadcrumbs store={store} />}
      </header>
      <main aria-busy={store.busy.value}>
        <div id={PANEL_ID} class="panel" role="tabpanel" aria-labelledby={tabId(view)}>
          {isOfStacks ? <Stacks store={store} /> : <Others store={store} />}
        </div>
        {store.busy.value && <div class="busy">Working…</div>}
      </main>
      {isOfStacks && (
        <footer>
          <Colours store={store} />
        </footer>
      )}
      <div id="said" class="unseen" role="status" aria-live="polite">
        {store.said.value}
      </div>
      <HelpDialog />
      <FrameDialog store={store} />
      <ThreadsDialog store={store} />
      <FrameMenu />
      {store.told.value !== '' && <div class="told-all">{store.told.value}</div>}
    </>
  );
}

/** Only some waits have the stack of the lock's holder: which part of the waiting that is. */
function Holders({ store }: { store: Store }) {
  if (store.measure.value.time !== 'owners' || store.ranges.value) return null;
  return <p class="note">{holdersWords(store.holders.value)}</p>;
}

function Colours({ store }: { store: Store }) {
  if (store.sides.value) return <DiffLegend store={store} />;
  if (store.colouring.value === 'cause') return <CauseLegend store={store} />;
  return store.colouring.value === 'package' ? (
    <PackageLegend store={store} />
  ) : (
    <Legend store={store} />
  );
}

function Stacks({ store }: { store: Store }) {
  const view = store.view.value;
  if (store.shown.value.samples.node.length === 0) {
    return <p class="empty">No data for these filters.</p>;
  }
  const sides = store.sides.value;
  if (view === 'table') {
    return sides ? <DiffTable store={store} sides={sides} /> : <TableView store={store} />;
  }
  if (view === 'tree') return <CallTreeView store={store} />;
  return store.around.value !== '' ? <SandwichView store={store} /> : <FlameView store={store} />;
}

function Others({ store }: { store: Store }) {
  const { compare } = store.profile.header;
  if (compare) return <Compare store={store} both={compare} />;
  switch (store.view.value) {
    case 'timeline':
      return <TimelineView store={store} />;
    case 'requests':
      return <Requests store={store} />;
    case 'locks':
      return <Locks store={store} />;
    case 'safepoints':
      return <Safepoints store={store} />;
    default:
      return <Overview store={store} />;
  }
}
