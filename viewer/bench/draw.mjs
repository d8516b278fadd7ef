// Measures the page of a large profile: how long it takes until the overview is on the screen
// (findings and endpoints) and until all of it can be used, and how long the flame graph and the
// timeline take to draw while every frame of the screen shows something else. Nothing is asserted:
// times depend on the machine.
//
//   npm run bench -- PAGE.html [FRAMES] [--json]
import { pathToFileURL } from 'node:url';
import { launch } from '../test/browser/launch.mjs';

const words = process.argv.slice(2).filter((word) => word !== '--json');
const asJson = process.argv.includes('--json');
const [page, frames = '120'] = words;
if (!page) {
  console.error('usage: npm run bench -- PAGE.html [FRAMES] [--json]');
  process.exit(2);
}

const browser = await launch();
const found = await openings();
const tab = await browser.newPage({ viewport: { width: 1400, height: 900 } });
await tab.goto(`${pathToFileURL(page).href}#view=flame`);
await tab.waitForSelector('main[aria-busy="false"]', { timeout: 120_000 });
for (const what of ['zooming', 'scrolling', 'searching']) {
  report(what, await tab.evaluate(measureFlame, [what, Number(frames)]));
}
await tab.keyboard.press('0');
await tab.keyboard.press('r');
found['callers: longest pause ms'] = await tab.evaluate(longestPause, 4000);
Object.assign(found, await tab.evaluate(openTimeline));
report('moving', await tab.evaluate(measureTimeline, Number(frames)));
await tab.evaluate(unfoldAll);
report('moving lanes', await tab.evaluate(measureTimeline, Number(frames)));
await browser.close();
found['flame p50'] = found['zooming: drawing ms, median'];
found['flame p95'] = found['zooming: drawing ms, p95'];
found['timeline p50'] = found['moving: drawing ms, median'];
found['timeline p95'] = found['moving: drawing ms, p95'];
found['lanes p50'] = found['moving lanes: drawing ms, median'];
found['lanes p95'] = found['moving lanes: drawing ms, p95'];
if (asJson) console.log(JSON.stringify(found));
else for (const [name, value] of Object.entries(found)) console.log(`${name}: ${round(value)}`);

/** Times in the page since it was asked for. */
async function openings() {
  const tab = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  await tab.addInitScript(watch);
  await tab.goto(pathToFileURL(page).href);
  await tab.waitForSelector('main[aria-busy="false"]', { timeout: 120_000 });
  const { overview, usable } = await tab.evaluate(() => window.dwellSeen);
  await tab.close();
  return { overview, usable };
}

/** In the page, before anything else: notes when things are on the screen. */
function watch() {
  const seen = (window.dwellSeen = {});
  const note = (name) => {
    if (seen[name] !== undefined) return;
    seen[name] = performance.now();
    // What the next frame begins with has been shown in the one before.
    requestAnimationFrame(() => setTimeout(() => (seen[name] = performance.now())));
  };
  new MutationObserver(() => {
    if (document.querySelector('.overview h2')) note('overview');
    if (document.querySelector('main[aria-busy="false"]')) note('usable');
  }).observe(document, { subtree: true, childList: true, attributes: true });
}

function report(what, { drawing, between, ...rest }) {
  const at = (list, part) => [...list].sort((a, b) => a - b)[Math.floor((list.length - 1) * part)];
  for (const [name, list] of [
    ['drawing', drawing],
    ['two frames of the screen', between],
  ]) {
    found[`${what}: ${name} ms, median`] = at(list, 0.5);
    found[`${what}: ${name} ms, p95`] = at(list, 0.95);
    found[`${what}: ${name} ms, longest`] = at(list, 1);
  }
  for (const [name, value] of Object.entries(rest)) found[`${what}: ${name}`] = value;
}

function round(value) {
  return Math.round(value * 10) / 10;
}

/** In the page: shows the timeline, and waits until all lanes in sight are drawn. */
async function openTimeline() {
  const tick = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const started = performance.now();
  window.dwellFlame.store.view.value = 'timeline';
  let [last, longest, first] = [started, 0, 0];
  do {
    await tick();
    const now = performance.now();
    [last, longest] = [now, Math.max(longest, now - last)];
    if (!first && window.dwellTimeline?.lastDraw.lanes) first = now - started;
  } while (!window.dwellTimeline?.lastDraw.lanes || window.dwellTimeline.lastDraw.left > 0);
  const all = performance.now() - started;
  return { 'timeline first': first, 'timeline all': all, 'timeline pause': longest };
}

/** In the page: gives all threads lanes of their own, and waits until those in sight are drawn. */
async function unfoldAll() {
  const timeline = window.dwellTimeline;
  for (const lane of timeline.lanes.value) {
    if (lane.kind === 'pool' && !lane.open) timeline.toggle(lane.key);
  }
  const tick = () => new Promise((resolve) => requestAnimationFrame(resolve));
  do await tick();
  while (timeline.lastDraw.left > 0);
}

/** In the page: looks at another part of the time in every frame of the screen. */
async function measureTimeline(frames) {
  const timeline = window.dwellTimeline;
  const { whole } = timeline;
  const [drawing, between] = [[], []];
  let last = performance.now();
  for (let i = 0; i < frames; i++) {
    const length = (whole.to - whole.from) / 2 ** (i % 14);
    const from = ((i * 0.37) % 1) * (whole.to - length);
    timeline.set({ from, to: from + length });
    await new Promise((resolve) => requestAnimationFrame(resolve));
    await new Promise((resolve) => requestAnimationFrame(resolve));
    drawing.push(timeline.lastDraw.ms);
    const now = performance.now();
    between.push(now - last);
    last = now;
  }
  return { drawing, between };
}

/** In the page: draws `frames` different pictures, one a frame of the screen. */
async function measureFlame([what, frames]) {
  const controller = window.dwellFlame;
  const { store } = controller;
  const scroller = document.querySelector('.flame-scroll');
  const tree = store.tree.value;
  const tick = () => new Promise((resolve) => requestAnimationFrame(resolve));
  store.query.value = what === 'searching' ? 'handle1' : '';
  store.zoom.value = 0;
  await tick();
  const [drawing, between] = [[], []];
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
  return { drawing, between, 'rectangles at most': rects, nodes: tree.size };
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
