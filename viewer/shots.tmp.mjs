// usage: node shots.tmp.mjs PAGE OUT PREFIX "widths" "schemes" "name=fragment" ...
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';
import { launch } from './test/browser/launch.mjs';
const [page, out, prefix, widths, schemes, ...views] = process.argv.slice(2);
const browser = await launch();
for (const scheme of schemes.split(',')) for (const w of widths.split(',')) {
  const context = await browser.newContext({ viewport: { width: +w, height: +w < 500 ? 844 : 900 }, colorScheme: scheme });
  const tab = await context.newPage();
  tab.on('pageerror', (e) => console.log('ERR', e.message));
  for (const v of views) {
    const i = v.indexOf('='); const name = v.slice(0, i), frag = v.slice(i + 1);
    await tab.goto('about:blank');
    await tab.goto(`${pathToFileURL(page).href}#${frag}`);
    await tab.waitForSelector('main[aria-busy="false"]');
    await tab.waitForTimeout(350);
    const over = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (over > 0) console.log(`${name} ${w}: page wider by ${over}`);
    await tab.screenshot({ path: join(out, `${prefix}-${name}-${w}${scheme === 'dark' ? '-dark' : ''}.png`) });
  }
  await context.close();
}
await browser.close();
