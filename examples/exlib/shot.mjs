// Takes a picture of a page of the report, for the documents. Opens files only; asks no network.
//
// usage: node shot.mjs PAGE.html FRAGMENT OUT.png [WIDTH HEIGHT]
// The fragment is the part of the page's address after #; see viewer/src/state/fragment.ts.
import { pathToFileURL } from 'node:url';
import { launch } from '../../viewer/test/browser/launch.mjs';

const [page, fragment, out, width = '1000', height = '560'] = process.argv.slice(2);
if (!out) {
  console.error('usage: node shot.mjs PAGE.html FRAGMENT OUT.png [WIDTH HEIGHT]');
  process.exit(2);
}
const browser = await launch();
try {
  const viewport = { width: Number(width), height: Number(height) };
  const tab = await browser.newPage({ viewport, colorScheme: 'light' });
  await tab.goto(`${pathToFileURL(page).href}#${fragment}`);
  await tab.waitForSelector('main[aria-busy="false"]');
  await tab.waitForTimeout(300);
  await tab.screenshot({ path: out });
} finally {
  await browser.close();
}
