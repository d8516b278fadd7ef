// Measures the flame graph of a large profile: how long it takes to appear, and the time of a
// frame of the screen while every frame draws something else (zooming, then scrolling). Nothing
// is asserted: times depend on the machine.
//
//   npm run bench -- PAGE.html [FRAMES]
import { pathToFileURL } from 'node:url';
import { launch } from '../test/browser/launch.mjs';

const [page, frames = '120'] = process.argv.slice(2);
if (!page) {
  console.error('usage: npm run bench -- PAGE.html [FRAMES]');
  process.exit(2);
}

const browser = await launch();
const tab = await browser.newPage({ viewport: { width: 1400, height: 900 } });
const started = Date.now();
await tab.goto(pathToFileURL(page).href);
await tab.waitForSelector('main[aria-busy="false"]', { timeout: 120_000 });
console.log(`shown after ${Date.now() - started} ms`);

for (const what of ['zooming', 'scrolling', 'searching']) {
  const times = await tab.evaluate(measure, [what, Number(frames)]);
  const text = Object.entries(times).map(([name, value]) => `${name} ${value}`);
  console.log(`${what}: ${text.join(', ')}`);
}
await tab.keyboard.press('0');
const reversing = Date.now();
await tab.keyboard.press('r');
const stalls = tab.evaluate(longestPause, 4000);
console.log(`callers: longest pause of the page ${Math.round(await stalls)} ms`);
console.log(`callers: ${Date.now() - reversing} ms watched`);
await browser.close();

/** In the page: draws `frames` different pictures, one a frame of the screen. */
async function measure([what, frames]) {
  const controller = window.dwellFlame;
  const { store } = controller;
  const scroller = document.querySelector('.flame-scroll');
  const tree = store.tree.value;
  const tick = () => new Promise((resolve) => requestAnimationFrame(resolve));
  store.query.value = what === 'searching' ? 'handle1' : '';
  store.zoom.value = 0;
  await tick();
  const between = [];
  const drawing = [];
  let rects = 0;
  let last = performance.now();
  for (let i = 0; i < frames; i++) {
    if (what === 'scrolling') scroller.scrollTop = (i * 97) % (scroller.scrollHeight - 800);
    else store.zoom.value = i % 2 === 0 ? 0 : (tree.children(0)[0] ?? 0) + (i % 5);
    await tick();
    await tick();
    drawing.push(controller.lastDraw.ms);
    rects = Math.max(rects, controller.lastDraw.rects);
    const now = performance.now();
    between.push(now - last);
    last = now;
  }
  const at = (list, part) =>
    [...list].sort((a, b) => a - b)[Math.floor(list.length * part)].toFixed(1);
  return {
    'drawing ms, median': at(drawing, 0.5),
    p95: at(drawing, 0.95),
    'two screen frames ms, median': at(between, 0.5),
    'p95 ': at(between, 0.95),
    'rectangles at most': rects,
    nodes: tree.size,
  };
}

/** In the page: the longest time that it could not draw. */
async function longestPause(forMs) {
  const until = performance.now() + forMs;
  let longest = 0;
  let last = performance.now();
  while (last < until) {
    await new Promise((resolve) => requestAnimationFrame(resolve));
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
  }
  return longest;
}
