// Reads the data in the page and shows it.
import { effect } from '@preact/signals';
import { render } from 'preact';
import { bytesOfPage } from './data/blocks';
import { plain, shortened } from './data/plain';
import { readProfile } from './data/profile';
import { fromFragment } from './state/fragment';
import { Store } from './state/store';
import { App } from './ui/App';
import './state/theme';
import './ui/style.css';

async function main(root: HTMLElement): Promise<void> {
  const bytes = await bytesOfPage(document);
  if (!bytes) throw new Error('This page holds no profile.');
  const profile = readProfile(bytes);
  const title = shortened(plain(profile.header.title), 100);
  document.title = title ? `${title} - dwell` : 'dwell';
  const store = new Store(profile);
  store.start(location.hash);
  // What this page wrote into its own address must not come back as a change.
  let written = location.hash;
  effect(() => {
    const { fragment } = store;
    if (store.busy.value) return;
    written = fragment === '' ? '' : `#${fragment}`;
    if (written !== location.hash) {
      history.replaceState(null, '', written || location.pathname + location.search);
    }
  });
  addEventListener('hashchange', () => {
    if (location.hash !== written) store.apply(fromFragment(location.hash));
  });
  root.replaceChildren();
  render(<App store={store} />, root);
}

const root = document.getElementById('app')!;
main(root).catch((error: unknown) => {
  const text = error instanceof Error ? error.message : String(error);
  root.replaceChildren();
  render(
    <p role="alert" class="empty">
      {text}
    </p>,
    root,
  );
});
