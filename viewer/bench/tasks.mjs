// Does twelve common tasks on the page of a recording, and those that it can on async-profiler's
// flame graph page and in the Firefox Profiler: prints the steps (clicks, keys, drags, typed words) and the seconds from the
// first step until the answer is on the screen. A person needs longer: the script does not read.
// Nothing is asserted about times, which depend on the machine. A task that fails is an error.
//
//   npm run tasks -- PAGE.html COMPARED.html [ASYNC_PROFILER.html] [--firefox URL] [--rounds N]
//
// PAGE.html is of `dwell demo`, COMPARED.html of `dwell diff`. The third page is recorded with
// `threads`. URL is a Firefox Profiler that has loaded the same recording, converted with
// `dwell convert app.jfr -o app.json.gz`: its front end on this machine, followed by
// /from-url/ADDRESS.
import { pathToFileURL } from 'node:url';
import { launch } from '../test/browser/launch.mjs';

const words = process.argv.slice(2);
const option = (name) => {
  const at = words.indexOf(name);
  return at < 0 ? undefined : words.splice(at, 2)[1];
};
const rounds = Number(option('--rounds') ?? 5);
const firefox = option('--firefox');
const [page, compared, other] = words;
if (!compared || !(rounds >= 1)) {
  console.error(
    'usage: npm run tasks -- PAGE.html COMPARED.html [ASYNC_PROFILER.html] [--firefox URL] ' +
      '[--rounds N]',
  );
  process.exit(2);
}

/** A tab with its steps counted. */
class Hand {
  constructor(tab) {
    this.tab = tab;
    this.steps = [];
    this.began = 0;
  }

  step(what) {
    this.began ||= performance.now();
    this.steps.push(what);
  }

  async key(key) {
    this.step(key);
    await this.tab.keyboard.press(key);
  }

  async type(text) {
    this.step(`type "${text}"`);
    await this.tab.keyboard.type(text);
  }

  async click(target, options = {}) {
    this.step(options.button === 'right' ? 'right click' : 'click');
    await this.tab.locator(target).first().click(options);
  }

  async clickAt({ x, y }) {
    this.step('click');
    await this.tab.mouse.click(x, y);
  }

  /** Drags across a part of a chart, from and to a share of its width. */
  async drag(target, from, to, key) {
    const chart = this.tab.locator(target).first();
    let box = await chart.boundingBox();
    if (box.y + box.height > this.tab.viewportSize().height) {
      this.step('scroll');
      await chart.scrollIntoViewIfNeeded();
      box = await chart.boundingBox();
    }
    this.step(key ? `${key}+drag` : 'drag');
    const [left, right] = [from, to].map((share) => box.x + 44 + share * (box.width - 44));
    const { mouse, keyboard } = this.tab;
    if (key) await keyboard.down(key);
    await mouse.move(left, box.y + box.height / 2);
    await mouse.down();
    await mouse.move(right, box.y + box.height / 2, { steps: 4 });
    await mouse.up();
    if (key) await keyboard.up(key);
  }

  /** Waits until something holds in the page and is on the screen. */
  async see(what, argument) {
    await this.tab.waitForFunction(what, argument, { timeout: 60_000, polling: 'raf' });
    await this.tab.evaluate(
      () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done()))),
    );
  }

  /** Waits until the views show what is chosen. */
  idle() {
    return this.see(() => document.querySelector('main')?.getAttribute('aria-busy') === 'false');
  }
}

const drawn = (hand) => hand.see(() => window.dwellFlame?.store.view.value === 'flame');
const STRIP = '.strip canvas';

/** Name, page, and what is done. */
const TASKS = [
  [
    'hottest method',
    page,
    async (hand) => {
      await hand.key('3');
      await hand.see(() => document.querySelectorAll('table.top tbody tr').length > 3);
    },
  ],
  [
    'its callers',
    page,
    async (hand) => {
      await hand.key('3');
      await hand.see(() => document.querySelectorAll('table.top tbody tr').length > 3);
      await hand.click('table.top tbody tr:nth-child(2)', { button: 'right' });
      await hand.click('.frame-menu button:has-text("Callers and callees")');
      // Two graphs, one above the other.
      await hand.see(() => document.querySelectorAll('.flame-canvas').length === 2);
      await hand.idle();
    },
  ],
  [
    'time per thread',
    page,
    async (hand) => {
      await hand.key('2');
      await hand.key('s');
      await drawn(hand);
      await hand.see(() => window.dwellFlame.store.split.value === 'thread');
      await hand.idle();
    },
  ],
  [
    'one endpoint',
    page,
    async (hand) => {
      await hand.click('table.endpoints button.link');
      await hand.key('2');
      await drawn(hand);
      await hand.see(() => window.dwellFlame.store.measure.value.endpoint !== null);
      await hand.idle();
    },
  ],
  [
    'a time range',
    page,
    async (hand) => {
      await hand.drag(STRIP, 0.3, 0.5);
      await hand.key('2');
      await drawn(hand);
      await hand.see(() => window.dwellFlame.store.during.value !== null);
      await hand.idle();
    },
  ],
  [
    'two runs',
    compared,
    async (hand) => {
      await hand.key('2');
      await drawn(hand);
      await hand.idle();
    },
  ],
  [
    'two ranges',
    page,
    async (hand) => {
      await hand.drag(STRIP, 0.6, 0.9);
      await hand.drag(STRIP, 0.1, 0.4, 'Control');
      await hand.click('button:has-text("Flame graph of the differences")');
      await drawn(hand);
      await hand.see(() => window.dwellFlame.store.ranges.value !== null);
      await hand.idle();
    },
  ],
  [
    'lock holder',
    page,
    async (hand) => {
      await hand.key('7');
      await hand.see(() =>
        [...document.querySelectorAll('table.locks tbody td:nth-last-child(2)')].some((cell) =>
          /\(\d.*%\)/.test(cell.textContent),
        ),
      );
    },
  ],
  [
    'GC pauses',
    page,
    async (hand) => {
      await hand.key('5');
      await hand.see(() =>
        (window.dwellTimeline?.lanes.value ?? []).some(
          (lane) => lane.kind === 'runtime' && /GC pauses/.test(lane.name),
        ),
      );
    },
  ],
  [
    'share a place',
    page,
    async (hand) => {
      await hand.click('button:has-text("Copy link")');
      await hand.see(() => navigator.clipboard.readText().then((text) => /^file:/.test(text)));
    },
  ],
  [
    'search',
    page,
    async (hand) => {
      await hand.key('2');
      await hand.key('/');
      await hand.type('Ledger');
      await hand.see(() => /\d.*%/.test(document.querySelector('#matched')?.textContent ?? ''));
      await hand.idle();
    },
  ],
  [
    'export',
    page,
    async (hand) => {
      const file = hand.tab.waitForEvent('download');
      await hand.key('3');
      await hand.click('button:has-text("CSV")');
      await (await file).path();
    },
  ],
];

/** Tasks for async-profiler's page; the others need another page or another tool. */
const OTHERS = [
  [
    'time per thread',
    async (hand) => {
      // The widest frame above the root is a thread. Its place is no part of the task.
      const place = await hand.tab.evaluate(() => {
        const [widest] = [...levels[1]].sort((a, b) => b.width - a.width);
        const box = canvas.getBoundingClientRect();
        const y = inverted ? 24 : canvasHeight - 24;
        return { x: box.left + (widest.left + widest.width / 2) * px, y: box.top + y };
      });
      await hand.tab.evaluate(() => canvas.scrollIntoView(false));
      const box = await hand.tab.locator('canvas').boundingBox();
      await hand.clickAt({ x: place.x, y: box.y + box.height - 24 });
      await hand.see(() => root.level === 1);
    },
  ],
  [
    'search',
    async (hand) => {
      hand.tab.once('dialog', (dialog) => {
        hand.step('type "Ledger"');
        hand.step('Enter');
        void dialog.accept('Ledger');
      });
      await hand.key('Control+f');
      await hand.see(() => /\d.*%/.test(document.getElementById('matchval').textContent));
    },
  ],
];

const button = (text) => `.tabBarTabButton:has-text("${text}")`;
const hasRow = (text) =>
  [...document.querySelectorAll('.treeViewRowScrolledColumns')].some((row) =>
    row.textContent.includes(text),
  );

/** Chooses a thread of the Firefox Profiler, which shows one at a time. */
async function worker(hand) {
  hand.step('scroll');
  await hand.click('.timelineTrackNameButton:has-text("http-worker-1")');
}

/** The methods of a thread by self time, without those that are idle. */
async function inverted(hand) {
  await worker(hand);
  await hand.click('label:has-text("Invert call stack")');
  await hand.click('label:has-text("Include idle samples")');
  await hand.see(() => /invert/.test(location.search) && /hideIdle|idle/i.test(location.search));
  await hand.see(() => document.querySelectorAll('.treeViewRowScrolledColumns').length > 3);
}

const FIREFOX = [
  ['hottest method', inverted],
  [
    'its callers',
    async (hand) => {
      await inverted(hand);
      await hand.click('.treeViewRowScrolledColumns');
      await hand.key('ArrowRight');
      await hand.see(() => document.querySelector('.treeRowToggleButton.expanded') !== null);
    },
  ],
  [
    'a time range',
    async (hand) => {
      await worker(hand);
      await hand.drag('.timelineTrackLocalRow.selected .timelineTrackThread', 0.3, 0.5);
      await hand.click(button('Flame Graph'));
      await hand.see(() => document.querySelector('.flameGraphCanvas') !== null);
    },
  ],
  [
    'lock holder',
    async (hand) => {
      await worker(hand);
      await hand.click(button('Marker Table'));
      await hand.see(hasRow, 'http-worker-');
    },
  ],
  [
    'GC pauses',
    async (hand) => {
      await hand.click('.timelineTrackNameButton:has-text("process")');
      await hand.click(button('Marker Chart'));
      await hand.see(() => document.querySelector('.chartCanvas.markerChartCanvas, .chartCanvas'));
    },
  ],
  [
    'search',
    async (hand) => {
      await worker(hand);
      await hand.click('input.idleSearchFieldInput');
      await hand.type('Ledger');
      await hand.see(() => /search=Ledger/.test(location.search));
    },
  ],
  [
    'export',
    async (hand) => {
      const file = hand.tab.waitForEvent('download');
      await hand.click('.menuButtonsShareButtonButton');
      await hand.click('.menuButtonsDownloadButton, a:has-text("Download")');
      await (await file).path();
    },
  ],
];

const browser = await launch();
try {
  const rows = [];
  for (const [name, file, act] of TASKS) {
    rows.push([name, ...(await measured(name, address(file), act, 'main[aria-busy="false"]'))]);
  }
  const [others, firefoxes] = [new Map(), new Map()];
  for (const [name, act] of other ? OTHERS : []) {
    others.set(name, await measured(name, address(other), act, 'canvas'));
  }
  for (const [name, act] of firefox ? FIREFOX : []) {
    firefoxes.set(name, await measured(name, firefox, act, '.treeViewBody'));
  }
  console.log('| task | steps | s | async-profiler: steps | s | Firefox Profiler: steps | s |');
  console.log('|---|---|--:|---|--:|---|--:|');
  for (const [name, steps, seconds] of rows) {
    const cells = [others, firefoxes].flatMap((they) => they.get(name) ?? ['', '']);
    console.log(`| ${[name, steps, seconds, ...cells].join(' | ')} |`);
  }
} finally {
  await browser.close();
}

function address(file) {
  return pathToFileURL(file).href;
}

/** The steps of a task, and the median of its seconds. */
async function measured(name, page, act, ready) {
  const seconds = [];
  let steps = '';
  for (let round = 0; round < rounds; round++) {
    const context = await browser.newContext({
      viewport: { width: 1400, height: 900 },
      permissions: ['clipboard-read', 'clipboard-write'],
      acceptDownloads: true,
    });
    const tab = await context.newPage();
    await tab.goto(page);
    await tab.waitForSelector(ready, { timeout: 60_000 });
    // Work of the page after it is first shown is no part of the task.
    await tab.waitForTimeout(500);
    const hand = new Hand(tab);
    try {
      await act(hand);
    } catch (error) {
      throw new Error(`${name}: ${error.message}`, { cause: error });
    }
    seconds.push((performance.now() - hand.began) / 1000);
    steps = `${hand.steps.length}: ${hand.steps.join(', ')}`;
    await context.close();
  }
  seconds.sort((a, b) => a - b);
  return [steps, seconds[Math.floor(seconds.length / 2)].toFixed(2)];
}
