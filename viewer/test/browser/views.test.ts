// The table, the call tree, hostile names and accessibility, in a browser.
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FlameController } from '../../src/flame/controller';
import { VIEWS } from '../../src/state/fragment';
import type { TimelineController } from '../../src/timeline/controller';
import { launch } from './launch.mjs';
import { framesOf, open, ready, shot, twoFrames, violations, zoomedTo } from './page';

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(async () => {
  await browser.close();
});

/** The whole weight of the graph on show. */
function total(page: Page): Promise<number> {
  return page.evaluate(() => {
    const controller = (window as never as { dwellFlame: FlameController }).dwellFlame;
    return controller.store.tree.value!.total;
  });
}

describe('the table', () => {
  it('sorts, filters, and leads back to the graph', async () => {
    const { page, close } = await open(browser, 'small.html');
    await page.keyboard.press('t');
    await page.waitForSelector('table.top');
    const column = (n: number) =>
      page.locator(`table.top tbody td:nth-child(${n})`).allInnerTexts();
    const percents = async (n: number) => (await column(n)).map((text) => Number.parseFloat(text));
    const falling = (values: number[]) =>
      values.every((value, i) => i === 0 || value <= values[i - 1]!);
    expect(falling(await percents(1))).toBe(true);
    expect(await page.getAttribute('th.own', 'aria-sort')).toBe('descending');
    await page.click('th.total button');
    expect(falling(await percents(2))).toBe(true);
    expect((await column(4))[0]).toBe('java.lang.Thread.run');
    await page.click('th.name button');
    const names = await column(4);
    expect(names).toEqual([...names].sort((a, b) => (a < b ? -1 : 1)));
    await page.fill('#search', 'getnode');
    expect(await column(4)).toEqual(['java.util.HashMap.getNode']);
    await page.focus('.table-view .scroll');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.flame-canvas');
    expect(await page.inputValue('#search')).toBe('java.util.HashMap.getNode');
    // Keys for frames mean the selected row.
    await page.keyboard.press('3');
    await page.waitForSelector('table.top');
    await page.keyboard.press('g');
    await expect.poll(() => page.evaluate('location.hash')).toContain('around=java.util.HashMap');
    await close();
  });

  it('leads from a thread to its graph, and has no tools of graphs', async () => {
    const { page, close } = await open(browser, 'small.html', { fragment: '#view=table&time=cpu' });
    await page.click('.table-view button:has-text("Threads")');
    const tools = page.locator('.toolbar button:has-text("Callers"), [aria-label="Split"]');
    expect(await tools.count()).toBe(0);
    const row = page.locator('tr[aria-rowindex="3"]');
    const name = await row.locator('td.name').innerText();
    await row.dblclick();
    await ready(page);
    expect(await tools.count()).toBe(2);
    expect(await page.locator('[aria-label="Threads"] option:checked').innerText()).toContain(name);
    await close();
  });

  it('shows only the rows in sight, and moves by key', async () => {
    const { page, close } = await open(browser, 'small.html', {
      fragment: '#view=table&time=cpu&frames=all',
    });
    await page.waitForSelector('table.top tr[aria-rowindex]');
    const rows = Number(await page.getAttribute('table.top', 'aria-rowcount'));
    expect(rows).toBeGreaterThan(200);
    expect(await page.locator('tr[aria-rowindex]').count()).toBeLessThan(80);
    await page.focus('.table-view .scroll');
    await page.keyboard.press('End');
    await page.waitForSelector(`tr[aria-rowindex="${rows}"][aria-current]`);
    await page.keyboard.press('Home');
    await page.waitForSelector('tr[aria-rowindex="2"][aria-current]');
    await close();
  });
});

describe('the call tree', () => {
  it('opens and closes by key, and zooms', async () => {
    const { page, close } = await open(browser, 'small.html');
    await page.keyboard.press('c');
    await page.waitForSelector('[role=tree]');
    const selected = page.locator('[role=treeitem][aria-selected=true]');
    expect(await selected.innerText()).toContain('all');
    const before = await page.locator('[role=treeitem]').count();
    await page.keyboard.press('ArrowDown');
    expect(await selected.innerText()).toContain('java.lang.Thread.run');
    expect(await selected.getAttribute('aria-level')).toBe('2');
    await page.keyboard.press('ArrowLeft');
    expect(await selected.getAttribute('aria-expanded')).toBe('false');
    expect(await page.locator('[role=treeitem]').count()).toBeLessThan(before);
    await page.keyboard.press('ArrowRight');
    expect(await selected.getAttribute('aria-expanded')).toBe('true');
    await page.keyboard.press('Enter');
    expect(await zoomedTo(page)).toBe('Thread.run');
    await close();
  });
});

describe('the graph of wall time', () => {
  it('shows the stacks of a cause, of an endpoint, and comes back from its address', async () => {
    const { page, close } = await open(browser, 'small.html');
    const chosen = (label: string) =>
      page.locator(`select[aria-label="${label}"] option:checked`).innerText();
    const choose = async (label: string, text: string) => {
      const select = page.locator(`select[aria-label="${label}"]`);
      const option = select.locator('option', { hasText: text });
      await select.selectOption((await option.getAttribute('value'))!);
      await ready(page);
      return total(page);
    };
    const cpu = await total(page);
    const [all, off] = [await choose('Time', 'Wall time'), await choose('Time', 'Waiting')];
    const monitor = await choose('Time', 'monitor');
    expect(all).toBeGreaterThan(off);
    expect(off).toBeGreaterThan(monitor);
    expect(monitor).toBeGreaterThan(0);
    expect(all - off).toBeLessThanOrEqual(cpu);
    const ofEndpoint = await choose('Endpoint', 'POST /orders');
    expect(ofEndpoint).toBeLessThanOrEqual(monitor);
    await page.waitForFunction("location.hash.includes('time=waits%3Amonitor')");
    await page.reload();
    await ready(page);
    expect(await total(page)).toBe(ofEndpoint);
    expect(await chosen('Time')).toContain('monitor');
    expect(await chosen('Endpoint')).toBe('POST /orders');
    await close();
  });
});

/** Keeps what the page shows before it has read its data. */
function keepPreview(): void {
  new MutationObserver(() => {
    const preview = document.querySelector<HTMLElement>('.preview');
    if (preview) Object.assign(window, { previewed: preview.innerText });
  }).observe(document, { subtree: true, childList: true });
}

describe('the overview', () => {
  it('shows findings and endpoints before the data is read', async () => {
    const look = { fragment: '', first: keepPreview };
    for (const name of ['small.html', 'hostile.html']) {
      const { page, close } = await open(browser, name, look);
      const text = (await page.evaluate('window.previewed')) as string;
      expect(text).toContain('reserve outside of the lock');
      expect(text).toContain('GET /orders/{id}');
      expect(await page.locator('.preview').count()).toBe(0);
      await close();
    }
    const { page, close } = await open(browser, 'small.html', { ...look, fragment: '#view=flame' });
    expect(await page.evaluate('window.previewed')).toBe(undefined);
    await close();
  });

  it('gives idle time one line, and shows it where that is wanted', async () => {
    const { page, close } = await open(browser, 'small.html', { fragment: '' });
    const causes = async () => {
      const names = await page.locator('table.causes tbody th').allInnerTexts();
      const shares = await page.locator('table.causes tbody td:nth-child(2)').allInnerTexts();
      const values = shares.map((text) => Number.parseFloat(text));
      expect(Math.abs(values.reduce((sum, value) => sum + value, 0) - 100)).toBeLessThan(
        0.1 * values.length,
      );
      return new Map(names.map((name, i) => [name.trim(), values[i]!]));
    };
    const wall = async () => {
      await page.selectOption('select[aria-label="Time"]', { label: 'Wall time' });
      await ready(page);
      return total(page);
    };
    const line = await page.innerText('p.idle');
    const [, share, threads] =
      /([\d.]+)\s% of all wall time, in ([\d,]+)(?: of [\d,]+)? threads?/.exec(line) ?? [];
    expect(Number(threads)).toBeGreaterThan(0);
    const before = await causes();
    expect(before.has('idle-pool')).toBe(false);
    // The errors of the shares of this time are known.
    expect(await page.locator('table.causes thead th', { hasText: '±' }).count()).toBe(1);
    await page.keyboard.press('2');
    const busy = await wall();
    await page.keyboard.press('a');
    await ready(page);
    const all = await total(page);
    expect(Math.abs(((all - busy) / all) * 100 - Number(share))).toBeLessThan(0.06);
    await page.waitForFunction("location.hash.includes('idle=1')");
    await page.reload();
    await ready(page);
    expect(await total(page)).toBe(all);
    // Nothing is pushed out of the page by the mark that it is shown.
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0);
    const stacks = page.locator('select[aria-label="Stacks"]');
    await stacks.selectOption({ label: 'Wall time without idle time (a)' });
    await ready(page);
    expect(await total(page)).toBe(busy);
    await stacks.selectOption({ label: 'Wall time with idle time (a)' });
    await ready(page);
    expect(await page.getAttribute('.filters button:text-is("Idle ✕")', 'aria-pressed')).toBe(
      'true',
    );
    await page.keyboard.press('1');
    const after = await causes();
    expect(Math.abs(after.get('idle-pool')! - Number(share))).toBeLessThan(0.06);
    expect(after.get('socket')!).toBeLessThan(before.get('socket')!);
    expect(await page.locator('table.causes thead th', { hasText: '±' }).count()).toBe(1);
    await page.click('p.idle button');
    await page.waitForFunction("!location.hash.includes('idle')");
    expect(await causes()).toEqual(before);
    await close();
  });

  it('tells causes, endpoints and what was recorded', async () => {
    const { page, close } = await open(browser, 'small.html', { fragment: '' });
    expect(await page.getAttribute('#tab-overview', 'aria-selected')).toBe('true');
    const causes = await page.locator('table.causes tbody th').allInnerTexts();
    for (const cause of ['running', 'socket', 'monitor', 'runnable']) {
      expect(causes.map((text) => text.trim())).toContain(cause);
    }
    const shares = await page.locator('table.causes tbody td:nth-child(2)').allInnerTexts();
    const sum = shares.reduce((sum, text) => sum + Number.parseFloat(text), 0);
    expect(Math.abs(sum - 100)).toBeLessThan(0.1 * shares.length);
    const told = await page.locator('.endpoints .split').first().getAttribute('title');
    const parts = page.locator('.endpoints .split').first().locator('span');
    const widths = await parts.evaluateAll((spans) => spans.map((s) => s.clientWidth));
    expect(widths.length).toBeGreaterThan(2);
    expect(Math.min(...widths)).toBeGreaterThan(0);
    expect(told).toMatch(/socket \d+\.\d/);
    const facts = await page.innerText('.facts-columns');
    for (const fact of [
      'OpenJDK 64-Bit',
      '-Xmx2g',
      'G1 GC',
      '2 CPUs',
      'used 0.5 of 2',
      'perf',
      'ring full',
    ]) {
      expect(facts).toContain(fact);
    }
    expect(facts).not.toContain('-Dsecret');
    const finding = page.locator('.finding:has-text("the lock of com.example.shop.Stock")');
    expect(await finding.innerText()).toContain('Fix: reserve outside of the lock');
    expect(await finding.innerText()).toMatch(/^4\.00\ss/);
    await finding.click();
    await ready(page);
    // A finding about a lock leads to that lock.
    expect(await page.evaluate('location.hash')).toContain('&lock=com.example.shop.Stock');
    const current = page.locator('table.locks tr[aria-current="true"]');
    expect(await current.innerText()).toContain('com.example.shop.Stock');
    await close();
  });

  it('makes everything of a range that is dragged out, and back leads out of it', async () => {
    const { page, close } = await open(browser, 'small.html', { fragment: '#time=wall' });
    const cpu = () =>
      page.innerText('table.causes tbody tr:has-text("waiting for the network") td:nth-child(3)');
    const all = await cpu();
    const strip = page.locator('.strip canvas').first();
    await strip.scrollIntoViewIfNeeded();
    const box = (await strip.boundingBox())!;
    await page.mouse.move(box.x + box.width * 0.1, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.3, box.y + 30, { steps: 3 });
    await page.mouse.up();
    await ready(page);
    expect(await page.evaluate('location.hash')).toMatch(/^#range=\d+-\d+$/);
    expect(await cpu()).not.toBe(all);
    // Findings do not follow the range, and say so.
    expect(await page.innerText('section:has(#findings) .of-all')).toContain('full recording');
    const total = await page.evaluate(() => document.querySelector('.summary')!.textContent);
    expect(total).toContain('30.0');
    await page.keyboard.press('2');
    await ready(page);
    const weight = () => page.evaluate('dwellFlame.store.tree.value.total') as Promise<number>;
    const part = await weight();
    await page.fill('input[aria-label^="From"]', '0');
    await page.press('input[aria-label^="From"]', 'Enter');
    await ready(page);
    expect(await weight()).toBeGreaterThan(part);
    await page.goBack();
    await ready(page);
    await page.goBack();
    await expect.poll(() => page.evaluate('location.hash')).toMatch(/^#range=\d+-\d+$/);
    await page.goBack();
    await expect.poll(() => page.evaluate('location.hash')).toBe('');
    await expect.poll(cpu).toBe(all);
    await close();
  });
});

describe('tabs', () => {
  it('are there for keys, arrows, and the way back', async () => {
    const { page, close } = await open(browser, 'small.html', { fragment: '' });
    const selected = () => page.innerText('[role=tab][aria-selected=true]');
    await page.focus('#tab-overview');
    await page.keyboard.press('ArrowRight');
    expect(await selected()).toBe('Flame graph');
    await page.keyboard.press('End');
    expect(await selected()).toBe('Safepoints');
    expect(await page.getAttribute('[role=tabpanel]', 'aria-labelledby')).toBe('tab-safepoints');
    await page.keyboard.press('5');
    expect(await selected()).toBe('Timeline');
    await page.waitForSelector('.lanes-canvas');
    await page.goBack();
    await expect.poll(selected).toBe('Safepoints');
    await page.goBack();
    await expect.poll(selected).toBe('Flame graph');
    await page.goForward();
    await expect.poll(selected).toBe('Safepoints');
    await close();
  });
});

describe('requests', () => {
  it('lead from endpoints to the slowest ones, and to one over its threads', async () => {
    const { page, close } = await open(browser, 'small.html', { fragment: '#view=requests' });
    const endpoints = await page.locator('table.requests tbody th').allInnerTexts();
    expect(endpoints.sort()).toEqual(['GET /orders/{id}', 'POST /orders']);
    const cells = await page.locator('table.requests tbody tr:first-child td').allInnerTexts();
    expect(cells[0]).toBe('600');
    // The details begin below what is in sight of a low window.
    await page.setViewportSize({ width: 1300, height: 260 });
    await page.click('table.requests button:has-text("POST /orders")');
    await page.waitForSelector('#why');
    const bottom = () => page.locator('#why').evaluate((it) => it.getBoundingClientRect().bottom);
    await expect.poll(bottom).toBeLessThan(260);
    await page.setViewportSize({ width: 1300, height: 800 });
    expect(await page.innerText('.why')).toContain('waiting for the network');
    const took = await page.locator('table.slowest tbody th').allInnerTexts();
    const ms = took.map((text) => Number.parseFloat(text));
    expect(ms.length).toBe(20);
    expect([...ms].sort((a, b) => b - a)).toEqual(ms);
    await page.click('table.slowest tbody tr:first-child button');
    await page.waitForSelector('.over-threads .track span');
    expect(await page.innerText('#one-request')).toContain(took[0]);
    expect(await page.evaluate('location.hash')).toMatch(/request=\d+/);
    // One in four has a span inside of it, on another thread.
    const inner = page.locator('.of-span:has-text("span 0000abc0")');
    for (let row = 1; row <= 20 && (await inner.count()) === 0; row++) {
      await page.click(`table.slowest tbody tr:nth-child(${row}) button`);
    }
    expect(await inner.locator('.track').getAttribute('aria-label')).toMatch(/ at .* of it$/);
    expect(await page.locator('.of-span, .of-thread').count()).toBe(4);
    await page.click('button:has-text("Flame graph of this request")');
    await ready(page);
    expect(await total(page)).toBeGreaterThan(0);
    await page.waitForSelector('button:has-text("Request of")');
    await close();
  });
});

describe('locks and safepoints', () => {
  it('name waiters and holders, and lead to the stacks of the holders', async () => {
    const { page, close } = await open(browser, 'small.html', { fragment: '#view=locks' });
    const row = await page.innerText('table.locks tbody tr:first-child');
    expect(row).toContain('com.example.shop.Stock');
    expect(await page.innerText('.beside')).toContain('Stock.reserve');
    expect(await page.innerText('table.edges')).toContain('http-exec-#');
    await page.click('button:has-text("Flame graph of holders")');
    await ready(page);
    const frames = (await framesOf(page, 1)).map((place) => place.label);
    expect(frames).toEqual(['com.example.shop.Stock.reserve']);
    await close();
  });

  it('have places where owners of monitors were, as waits asked', async () => {
    const { page, close } = await open(browser, 'small.html', { fragment: '#view=locks' });
    const rows = page.locator('table.held tbody tr');
    expect(await rows.count()).toBe(1);
    expect(await rows.first().innerText()).toMatch(/Stock\s.*http-exec-#.*Stock\.reserve/s);
    expect(await page.innerText('section[aria-labelledby=held]')).toMatch(
      /holder\sunknown\sfor\s8\.9\s%/,
    );
    await rows.locator('button').click();
    expect(await rows.getAttribute('aria-current')).toBe('true');
    const beside = await page.innerText('section[aria-labelledby=held-stacks]');
    expect(beside).toContain('Stock.reserve');
    expect(beside).toContain('Orders.find');
    await close();
  });

  it('have names of classes that are broken between their parts in a narrow window', async () => {
    const { page, close } = await open(browser, 'small.html', {
      fragment: '#view=overview',
      width: 390,
    });
    const name = page.locator('table.locked tbody tr:first-child button');
    expect(await name.innerText()).toBe('com.example.shop.Stock');
    // Every part of the name is on one line: none has two boxes.
    const boxes = await name.evaluate((button) =>
      [...button.childNodes]
        .filter((node) => node.nodeType === Node.TEXT_NODE)
        .map((node) => {
          const range = document.createRange();
          range.selectNode(node);
          return range.getClientRects().length;
        }),
    );
    expect(boxes).toEqual([1, 1, 1, 1]);
    await close();
  });

  it('have waits by the class of the lock, which lead to the stacks that waited', async () => {
    const { page, close } = await open(browser, 'small.html', { fragment: '#view=overview' });
    const row = page.locator('table.locked tbody tr:first-child');
    expect(await row.innerText()).toMatch(/com\.example\.shop\.Stock\s.*\s80\s/);
    await row.locator('button').click();
    await ready(page);
    expect(await page.locator('#time option:checked').innerText()).toBe('In locks');
    expect(await total(page)).toBeGreaterThan(0);
    // The classes are no code: the shares are those of what waited.
    const legend = await page.innerText('.legend');
    expect(legend).toMatch(/\bclass(?!\s*\d)/);
    expect(legend).not.toMatch(/other 100/);
    await page.selectOption('#time', { label: 'CPU time' });
    await ready(page);
    expect(await page.innerText('.legend')).not.toContain('class');
    await close();
  });

  it('list operations and last threads', async () => {
    const { page, close } = await open(browser, 'small.html', { fragment: '#view=safepoints' });
    expect(await page.innerText('table.operations')).toContain('G1CollectForAllocation');
    expect(await page.innerText('table.culprits')).toContain('http-exec-2');
    const remedy = await page.innerText('.stops-view .beside');
    expect(remedy).toContain('-XX:+UseCountedLoopSafepoints');
    expect(await page.innerText('table.payers')).toContain('GET /');
    expect(await page.innerText('.stops-view')).toContain('individually recorded');
    await page.click('button:has-text("Flame graph of late threads")');
    await ready(page);
    const frames = (await framesOf(page, 1)).map((place) => place.label);
    expect(frames).toEqual(['com.example.shop.Report.copy']);
    expect(await total(page)).toBe(20 * 3_000_000);
    await close();
  });
});

describe('a file that is cut off', () => {
  it('is reported first, and next to the other file', async () => {
    const told = 'is cut off: 1 chunk is incomplete, 12,345 bytes are missing';
    const { page, close } = await open(browser, 'hostile.html', { fragment: '#view=overview' });
    const first = page.locator('.overview > :first-child');
    expect(await first.getAttribute('role')).toBe('note');
    expect(await first.innerText()).toContain(told);
    // An endpoint without a name is one of the hostile ones. Only the note is checked.
    expect((await violations(page)).filter((it) => it.includes('unread'))).toEqual([]);
    await shot(page, 'cut-off');
    await close();
    const two = await open(browser, 'compare.html', { fragment: '#view=overview' });
    expect(await two.page.innerText('table.files')).toContain(told);
    await two.close();
    const whole = await open(browser, 'small.html', { fragment: '#view=overview' });
    expect(await whole.page.locator('.unread').count()).toBe(0);
    await whole.close();
  });
});

describe('hostile names', () => {
  it('are text everywhere, and nothing of them runs', async () => {
    const { page, close } = await open(browser, 'hostile.html');
    for (const key of ['t', 't', 'c', 'c', 's', 's', 'r', 'r', 'l', 'l']) {
      await page.keyboard.press(key);
      await ready(page);
    }
    for (const place of await framesOf(page, 2)) {
      await page.mouse.move(place.x, place.y);
      await page.evaluate(twoFrames);
    }
    await page.keyboard.press('t');
    await page.fill('#search', '<script>');
    const names = await page.locator('table.top tbody td.name').allInnerTexts();
    expect(names).toContain('x.</script><script>window.hacked=1;alert(1)</script>');
    for (const view of ['Overview', 'Requests', 'Locks']) {
      await page.click(`[role=tab]:has-text("${view}")`);
      expect(await page.innerText('[role=tabpanel]'), view).toContain('<img src=x onerror');
    }
    await page.click('[role=tab]:has-text("Timeline")');
    // It is put on the window by an effect, after the tab is there.
    await page.waitForFunction(() => 'dwellTimeline' in window);
    await page.evaluate(() => {
      const timeline = (window as never as { dwellTimeline: TimelineController }).dwellTimeline;
      const lanes = timeline.lanes.value;
      timeline.showLane(lanes.findIndex(({ name }) => name.includes('<img src=x onerror')));
    });
    await page.waitForSelector('.lane-name:has-text("<img src=x onerror")');
    await page.click('[role=tab]:has-text("Safepoints")');
    expect(await page.locator('script').count()).toBe(1);
    expect(await page.locator('img, svg, b').count()).toBe(0);
    const text = await page.evaluate('document.documentElement.outerHTML');
    expect(text).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/);
    await close();
  });

  it('are refused by the policy even if they were markup', async () => {
    const { page } = await open(browser, 'small.html');
    const outcome = await page.evaluate(async () => {
      const script = document.createElement('script');
      script.textContent = 'window.hacked = 1';
      document.body.append(script);
      document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="window.hacked=2">');
      const asked = await fetch('https://example.invalid/').then(
        () => 'answered',
        () => 'refused',
      );
      await new Promise((done) => setTimeout(done, 100));
      return [(window as never as { hacked?: number }).hacked, asked];
    });
    expect(outcome).toEqual([undefined, 'refused']);
    await page.context().close();
  });
});

describe('everybody can read it', () => {
  const looks = [
    { name: 'wide-light', width: 1300, height: 800, scheme: 'light', views: VIEWS },
    { name: 'wide-dark', width: 1300, height: 800, scheme: 'dark', views: ['flame', 'table'] },
    { name: 'narrow-light', width: 390, height: 800, scheme: 'light', views: ['flame', 'tree'] },
    { name: 'narrow-dark', width: 390, height: 800, scheme: 'dark', views: VIEWS },
  ] as const;

  it.each([
    ['small', 390],
    ['small', 768],
    ['compare', 390],
  ] as const)('finds no table cut, and one row of tools: %s page, %i px', async (name, width) => {
    const { page, close } = await open(browser, `${name}.html`, { width, height: 844 });
    for (const view of VIEWS) {
      await page.evaluate((view) => {
        location.hash = `#view=${view}`;
      }, view);
      await ready(page);
      const seen = await page.evaluate(() => ({
        cut: [...document.querySelectorAll('.wide, .legend')]
          .filter((element) => element.scrollWidth > element.clientWidth)
          .map((element) => element.ariaLabel ?? element.className),
        tools: document.querySelector('.tools')!.clientHeight,
      }));
      expect(seen.cut, view).toEqual([]);
      if (width === 390) expect(seen.tools, view).toBeLessThan(45);
    }
    await close();
  });

  it.each(looks)('$name', async (look) => {
    const { page, close } = await open(browser, 'small.html', look);
    const shotOf = (view: string) => shot(page, `${look.name}-${view}`);
    expect(await page.getAttribute('html', 'data-theme')).toBe(look.scheme);
    // On a narrow page the search box is behind More: its key shows it.
    await page.keyboard.press('/');
    await page.fill('#search', 'service12');
    await page.keyboard.press('Enter');
    await ready(page);
    for (const view of look.views) {
      await page.evaluate((view) => {
        location.hash = `#view=${view}&q=service12`;
      }, view);
      await ready(page);
      expect(await violations(page), view).toEqual([]);
      await shotOf(view);
      const sideways = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
      expect(sideways, view).toBe(0);
    }
    if (look.width === 390) {
      // Tools have one row until more of them are asked for.
      await page.evaluate(() => (location.hash = '#view=flame'));
      await ready(page);
      const height = () => page.locator('.tools').evaluate((tools) => tools.clientHeight);
      const all = await height();
      await page.click('.toolbar .more');
      expect(await height()).toBeLessThan(45);
      expect(await height()).toBeLessThan(all);
    }
    await page.click('button:has-text("Help")');
    expect(await violations(page), 'help').toEqual([]);
    await shotOf('help');
    await page.keyboard.press('Escape');
    await page.click('button:has-text("Contrast")');
    expect(await page.getAttribute('html', 'data-contrast')).toBe('more');
    expect(await violations(page), 'contrast').toEqual([]);
    await shotOf('contrast');
    await close();
  });

  it.each([390, 1300, 1920])(
    'shows range fields as wide as their numbers, at %i px',
    async (width) => {
      const { page, close } = await open(browser, 'small.html', { width });
      await page.keyboard.press('/');
      const [from, to] = [page.getByLabel('From, in seconds'), page.getByLabel('To, in seconds')];
      const end = Number(await to.inputValue());
      // Milliseconds and their digits are all shown.
      await to.fill((end - 0.111).toFixed(3));
      await to.press('Enter');
      await from.fill('0.125');
      await from.press('Enter');
      for (const field of [from, to]) {
        const room = await field.evaluate((input: HTMLInputElement) => {
          const { font, paddingLeft, paddingRight } = getComputedStyle(input);
          const context = document.createElement('canvas').getContext('2d')!;
          context.font = font;
          // The arrows of the field are about a letter's height wide.
          const arrows = context.measureText('M').width * 1.2;
          const inner = input.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
          return inner - arrows - context.measureText(input.value).width;
        });
        expect(room, await field.inputValue()).toBeGreaterThanOrEqual(0);
      }
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0);
      await close();
    },
  );

  it('always shows where the focus is', async () => {
    const { page, close } = await open(browser, 'small.html');
    const unseen: string[] = [];
    for (let i = 0; i < 30; i++) {
      await page.keyboard.press('Tab');
      const seen = await page.evaluate(() => {
        const element = document.activeElement;
        if (!element || element === document.body) return '';
        const { outlineStyle, outlineWidth } = getComputedStyle(element);
        return outlineStyle !== 'none' && outlineWidth !== '0px'
          ? ''
          : element.outerHTML.slice(0, 80);
      });
      if (seen) unseen.push(seen);
    }
    expect(unseen).toEqual([]);
    await close();
  });
});
