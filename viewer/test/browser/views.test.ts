// The table, the call tree, hostile names and accessibility, in a browser.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { AxeResults } from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { FlameController } from '../../src/flame/controller';
import { launch } from './launch.mjs';
import { framesOf, open, ready, twoFrames, zoomedTo } from './page';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

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

/** What axe finds wrong, serious or worse. */
async function violations(page: Page): Promise<string[]> {
  // Not as a script of the page: its policy would refuse it, as it should.
  await page.evaluate(AXE);
  const results = (await page.evaluate('axe.run()')) as AxeResults;
  return results.violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' ')}`);
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
    await close();
  });

  it('shows only the rows in sight, and moves by key', async () => {
    const { page, close } = await open(browser, 'small.html', { fragment: '#view=table' });
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

describe('wall time', () => {
  it('is told by cause and endpoint, with the latencies of requests', async () => {
    const { page, close } = await open(browser, 'small.html');
    await page.keyboard.press('w');
    await page.waitForSelector('dialog[open] table.causes');
    const causes = await page.locator('table.causes tbody th').allInnerTexts();
    for (const cause of ['running', 'socket', 'monitor', 'idle-pool']) {
      expect(causes.map((text) => text.trim())).toContain(cause);
    }
    const shares = await page.locator('table.causes tbody td:nth-child(2)').allInnerTexts();
    const sum = shares.reduce((sum, text) => sum + Number.parseFloat(text), 0);
    expect(Math.abs(sum - 100)).toBeLessThan(0.1 * shares.length);
    const endpoints = await page.locator('table.requests tbody th').allInnerTexts();
    expect(endpoints.sort()).toEqual(['GET /orders/{id}', 'POST /orders']);
    const cells = await page.locator('table.requests tbody tr:first-child td').allInnerTexts();
    expect(cells.slice(0, 2)).toEqual(['600', '20.0']);
    const told = await page.locator('.wall-row .split').first().getAttribute('title');
    const parts = page.locator('.wall-row .split').first().locator('span');
    const widths = await parts.evaluateAll((spans) => spans.map((s) => s.clientWidth));
    expect(widths.length).toBeGreaterThan(2);
    expect(Math.min(...widths)).toBeGreaterThan(0);
    expect(told).toMatch(/socket \d+\.\d/);
    await page.keyboard.press('Escape');
    await page.waitForSelector('dialog[open]', { state: 'detached' });
    await close();
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
    await page.click('button:has-text("Recording")');
    expect(await page.innerText('dialog[open]')).toContain('<img src=x onerror');
    await page.keyboard.press('Escape');
    await page.click('button:has-text("Wall time")');
    expect(await page.innerText('dialog[open]')).toContain('<img src=x onerror');
    await page.keyboard.press('Escape');
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
    { name: 'wide-light', width: 1300, height: 800, scheme: 'light' },
    { name: 'wide-dark', width: 1300, height: 800, scheme: 'dark' },
    { name: 'narrow-light', width: 400, height: 800, scheme: 'light' },
    { name: 'narrow-dark', width: 400, height: 800, scheme: 'dark' },
  ] as const;

  it.each(looks)('$name', async (look) => {
    const { page, close } = await open(browser, 'small.html', look);
    const shot = (view: string) =>
      page.screenshot({ path: join(inject('shots'), `${look.name}-${view}.png`) });
    expect(await page.getAttribute('html', 'data-theme')).toBe(look.scheme);
    await page.fill('#search', 'service12');
    await page.keyboard.press('Enter');
    await ready(page);
    for (const view of ['flame', 'table', 'tree']) {
      await page.evaluate((view) => {
        location.hash = `#view=${view}&q=service12`;
      }, view);
      await ready(page);
      expect(await violations(page), view).toEqual([]);
      await shot(view);
      const sideways = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
      expect(sideways, view).toBe(0);
    }
    for (const dialog of ['Help', 'Wall time', 'Recording']) {
      await page.click(`button:has-text("${dialog}")`);
      expect(await violations(page), dialog).toEqual([]);
      await shot(dialog.toLowerCase().replace(' ', '-'));
      await page.keyboard.press('Escape');
    }
    await close();
  });

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
