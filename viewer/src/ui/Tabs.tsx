// The views as tabs. Arrow keys move along them, digits go to one from anywhere.
import { useEffect, useRef } from 'preact/hooks';
import { type View, viewsOf } from '../state/fragment';
import type { Store } from '../state/store';

export const TITLES: Readonly<Record<View, string>> = {
  overview: 'Overview',
  flame: 'Flame graph',
  table: 'Table',
  tree: 'Tree',
  timeline: 'Timeline',
  requests: 'Requests',
  locks: 'Locks',
  safepoints: 'Safepoints',
};

export const PANEL_ID = 'panel';

export function tabId(view: View): string {
  return `tab-${view}`;
}

export function Tabs({ store }: { store: Store }) {
  const list = useRef<HTMLDivElement>(null);
  const current = store.view.value;
  const views = viewsOf(store.profile);
  useEffect(() => {
    const tab = list.current?.querySelector(`#${tabId(current)}`);
    tab?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [current]);
  const onKey = (event: KeyboardEvent) => {
    const at = views.indexOf(current);
    const steps: Record<string, number> = {
      ArrowLeft: (at + views.length - 1) % views.length,
      ArrowRight: (at + 1) % views.length,
      Home: 0,
      End: views.length - 1,
    };
    const to = views[steps[event.key] ?? -1];
    if (!to) return;
    event.preventDefault();
    event.stopPropagation();
    store.view.value = to;
    list.current?.querySelector<HTMLElement>(`#${tabId(to)}`)?.focus();
  };
  return (
    <div ref={list} class="tabs" role="tablist" aria-label="Views" onKeyDown={onKey}>
      {views.map((view, i) => (
        <button
          key={view}
          type="button"
          role="tab"
          id={tabId(view)}
          aria-selected={view === current}
          aria-controls={PANEL_ID}
          tabIndex={view === current ? 0 : -1}
          title={`Key ${i + 1}`}
          onClick={() => (store.view.value = view)}
        >
          {store.profile.header.compare && view === 'overview' ? 'Differences' : TITLES[view]}
        </button>
      ))}
    </div>
  );
}
