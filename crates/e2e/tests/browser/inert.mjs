// Opens a report in a browser, uses it, and says what the page did that it should not:
// node inert.mjs PAGE.html prints one line for each misdeed and `rows N` at the end.
import { pathToFileURL } from 'node:url';
import { launch } from '../../../../viewer/test/browser/launch.mjs';

const url = pathToFileURL(process.argv[2]).href;
const browser = await launch();
const page = await browser.newPage();
page.setDefaultTimeout(120_000);
page.on('request', (request) => {
  const own = request.url().split('#')[0] === url || request.url().startsWith('data:');
  if (!own) console.log(`request for ${request.url()}`);
});
page.on('dialog', (dialog) => {
  console.log(`dialog: ${dialog.message()}`);
  void dialog.dismiss();
});
page.on('pageerror', (error) => console.log(`error: ${error.message}`));
page.on('console', (message) => {
  if (message.type() === 'error') console.log(`console: ${message.text()}`);
});

/** Elements and attributes that only a name could have made. */
function foreign() {
  const all = [...document.querySelectorAll('*')];
  const bad = all.filter(
    (element) =>
      ['IMG', 'IFRAME', 'OBJECT', 'EMBED'].includes(element.tagName) ||
      [...element.attributes].some((attribute) => attribute.name.startsWith('on')) ||
      (element.tagName === 'SCRIPT' && element.textContent.includes('alert(1)')),
  );
  return bad.map((element) => `element: ${element.outerHTML.slice(0, 200)}`);
}

async function look() {
  for (const line of await page.evaluate(foreign)) console.log(line);
}

await page.goto(`${url}#view=flame`);
await page.waitForSelector('main[aria-busy="false"]');
// Tooltips of whatever is under a grid of places.
for (let y = 100; y < 700; y += 40) for (let x = 20; x < 1260; x += 60) await page.mouse.move(x, y);
await look();
for (const text of ['alert', '<', '\u202e', '(', '\\']) {
  await page.fill('#search', text);
  await page.waitForTimeout(100);
  await look();
}
await page.fill('#search', '');
await page.locator('body').click({ position: { x: 2, y: 2 } });
await page.keyboard.press('Escape');
// Every view by its key, and the graph again.
for (const key of ['1', '3', '4', '5', '6', '7', '8', '2']) {
  await page.keyboard.press(key);
  await page.waitForTimeout(200);
  await look();
}
await page.keyboard.press('t');
await page.waitForSelector('table.top');
await look();
const rows = await page.locator('table.top tbody tr').count();
await browser.close();
console.log(`rows ${rows}`);
