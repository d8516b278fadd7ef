// Takes the pictures of the documents from pages of the demo. Opens files only; asks no network.
//
// usage: node pictures.mjs PAGE.html COMPARED.html FOLDER [light|dark] [WIDTH]
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { launch } from '../../viewer/test/browser/launch.mjs';

const [page, compared, folder, colorScheme = 'light', only] = process.argv.slice(2);
if (!folder) {
  console.error('usage: node pictures.mjs PAGE.html COMPARED.html FOLDER [light|dark] [WIDTH]');
  process.exit(2);
}
const HANDLER = 'io.dwell.demo.server.EndpointHandler.handle';

/** Name, page, fragment of the address, width, height, and an action before the picture. */
const PICTURES = [
  ['overview', page, '', 1300, 800],
  ['flame', page, 'view=flame', 1300, 700, point],
  ['lanes', page, 'view=timeline', 1300, 800],
  ['timeline', page, 'view=timeline', 1300, 900, chooseWait],
  ['requests', page, 'view=requests', 1300, 800],
  ['around', page, `view=flame&around=${HANDLER}`, 1300, 800],
  ['versus', page, 'view=flame&time=wall&endpoint=GET%20%2Frender&versus=slow', 1000, 600, point],
  ['diff', compared, 'view=flame&time=wall', 1000, 600, point],
  ['waits', page, 'view=flame&time=off&pool=http-worker-%23', 1000, 600, point],
  ['safepoints', page, 'view=safepoints', 1300, 800],
  ['allocated', page, 'view=flame&time=alloc', 1000, 600, point],
  ['alive', page, 'view=flame&time=live', 1000, 600, point],
];

const browser = await launch();
try {
  for (const [name, file, fragment, wide, height, before] of PICTURES) {
    const viewport = { width: Number(only ?? wide), height };
    const context = await browser.newContext({ viewport, colorScheme });
    const tab = await context.newPage();
    await tab.goto(`${pathToFileURL(file).href}#${fragment}`);
    await tab.waitForSelector('main[aria-busy="false"]');
    await tab.waitForTimeout(500);
    if (before) await before(tab);
    await tab.waitForTimeout(300);
    await tab.screenshot({ path: join(folder, `report-${name}.png`) });
    await context.close();
  }
} finally {
  await browser.close();
}

/** Clicks on the longest step that waits for a lock with an owner; of a request, if there is one. */
async function chooseWait(tab) {
  const place = await tab.evaluate(() => {
    const controller = window.dwellTimeline;
    const { looks, owner, ownerNode, duration } = controller.store.profile.wall;
    const lengthOf = (i) => duration?.[i] ?? looks.weight[i];
    const laneOf = (i) =>
      controller.lanes.value.findIndex(
        (lane) => lane.kind === 'thread' && lane.thread === looks.thread[i],
      );
    // The owner's stack is known.
    const isTold = (i) => owner[i] > 0 && ownerNode[i] > 0 && laneOf(i) >= 0;
    const told = [...owner.keys()].filter(isTold);
    const ofRequests = told.filter((i) => looks.endpoint[i] > 0);
    const all = ofRequests.length > 0 ? ofRequests : told;
    const [best] = all.sort((a, b) => lengthOf(b) - lengthOf(a));
    if (best === undefined) return null;
    const middle = looks.time[best] + lengthOf(best) / 2;
    const around = Math.max(4 * lengthOf(best), 5e6);
    controller.set({ from: middle - around, to: middle + around });
    controller.showLane(laneOf(best));
    const box = document.querySelector('.lanes-canvas').getBoundingClientRect();
    const y = box.top + 22 + laneOf(best) * 26 - controller.scroller.scrollTop + 13;
    return { x: controller.placeOf(middle), y };
  });
  if (!place) throw new Error('the demo has no wait for a lock whose owner has a stack');
  await tab.waitForTimeout(300);
  await tab.mouse.click(place.x, place.y);
  await tab.waitForSelector('.chosen');
  await tab.mouse.move(5, 5);
}

/** Points at the widest frame some way above the root. */
async function point(tab) {
  const place = await tab.evaluate(() => {
    const { store } = window.dwellFlame;
    const { levels } = store.tree.value;
    const level = levels[Math.min(8, levels.length - 1)];
    const node = level.id[level.w.indexOf(Math.max(...level.w))];
    return window.dwellFlame.placeInWindow(node);
  });
  await tab.mouse.move((place.left + place.right) / 2, place.top + 9);
  await tab.waitForSelector('.tooltip');
}
