// Reads the data in the page and shows it.
import { render } from 'preact';
import { beginningOfPage, bytesOfPage } from './data/blocks';
import { readHeader } from './data/columns';
import { plain, shortened } from './data/plain';
import { type Header, readProfile, VERSION } from './data/profile';
import { keepAddress } from './state/address';
import { fromFragment } from './state/fragment';
import { Store } from './state/store';
import { App } from './ui/App';
import { Preview } from './ui/Preview';
import './state/theme';
import './ui/style.css';

async function main(root: HTMLElement): Promise<void> {
  await preview(root);
  const bytes = await bytesOfPage(document);
  if (!bytes) throw new Error('This page holds no profile.');
  const profile = readProfile(bytes);
  const title = shortened(plain(profile.header.title), 100);
  document.title = title ? `${title} - dwell` : 'dwell';
  const store = new Store(profile);
  store.start(location.hash);
  keepAddress(store);
  render(null, root);
  root.replaceChildren();
  render(<App store={store} />, root);
}

/** Shows the header's data while the columns are read. */
async function preview(root: HTMLElement): Promise<void> {
  if (fromFragment(location.hash).view !== 'overview') return;
  const header = readHeader<Header>(await beginningOfPage(document));
  if (!header || header.version !== VERSION) return;
  root.replaceChildren();
  render(<Preview header={header} />, root);
  // Until it is on the screen.
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
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
