// The page: head, tools, one of the views, legend.
import { useEffect } from 'preact/hooks';
import { CallTreeView } from '../calltree/CallTreeView';
import { hasWall } from '../data/profile';
import { FlameView } from '../flame/FlameView';
import type { Store } from '../state/store';
import { TableView } from '../table/TableView';
import { Breadcrumbs } from './Breadcrumbs';
import { onKey } from './commands';
import { HelpDialog } from './HelpDialog';
import { Legend } from './Legend';
import { RecordingDialog } from './RecordingDialog';
import { Head } from './Head';
import { Toolbar } from './Toolbar';
import { WallDialog } from './WallDialog';

export function App({ store }: { store: Store }) {
  useEffect(() => {
    const listener = (event: KeyboardEvent) => onKey(store, event);
    document.addEventListener('keydown', listener);
    return () => document.removeEventListener('keydown', listener);
  }, [store]);
  const view = store.view.value;
  const empty = store.shown.value.samples.node.length === 0;
  return (
    <>
      <header>
        <Head store={store} />
        <Toolbar store={store} />
        {view !== 'table' && <Breadcrumbs store={store} />}
      </header>
      <main aria-busy={store.busy.value}>
        {empty && <p class="empty">This recording has no such samples.</p>}
        {!empty && view === 'flame' && <FlameView store={store} />}
        {!empty && view === 'table' && <TableView store={store} />}
        {!empty && view === 'tree' && <CallTreeView store={store} />}
        {store.busy.value && <div class="busy">Working…</div>}
      </main>
      <footer>
        <Legend store={store} />
      </footer>
      <div id="said" class="unseen" role="status" aria-live="polite">
        {store.said.value}
      </div>
      <HelpDialog />
      <RecordingDialog store={store} />
      {hasWall(store.profile.header) && <WallDialog store={store} />}
    </>
  );
}
