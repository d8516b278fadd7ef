// Builds one HTML file and locks it: the content security policy names the hash of the one script
// and the one style sheet, so nothing else can run or load, whatever ends up in the page.
import { createHash } from 'node:crypto';
import { defineConfig } from 'vitest/config';
import type { Plugin } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';

function hashes(html: string, tag: string): string {
  const bodies = [...html.matchAll(new RegExp(`<${tag}[^>]*>([\\s\\S]*?)</${tag}>`, 'g'))];
  return bodies
    .map(
      (body) =>
        `'sha256-${createHash('sha256')
          .update(body[1] ?? '')
          .digest('base64')}'`,
    )
    .join(' ');
}

function contentSecurityPolicy(): Plugin {
  return {
    name: 'dwell-csp',
    enforce: 'post',
    generateBundle: {
      order: 'post',
      handler(_options, bundle) {
        for (const file of Object.values(bundle)) {
          if (file.type !== 'asset' || !file.fileName.endsWith('.html')) continue;
          const html = String(file.source);
          const policy = [
            "default-src 'none'",
            `script-src ${hashes(html, 'script')}`,
            `style-src ${hashes(html, 'style')}`,
            'img-src data:',
            "base-uri 'none'",
            "form-action 'none'",
          ].join('; ');
          file.source = html.replace('content="default-src \'none\'"', `content="${policy}"`);
        }
      },
    },
  };
}

export default defineConfig({
  plugins: [viteSingleFile({ removeViteModuleLoader: true }), contentSecurityPolicy()],
  build: { target: 'es2022', modulePreload: false },
  test: {
    projects: [
      // A slow machine is no failure; one that hangs is.
      { test: { name: 'unit', include: ['test/unit/**/*.test.ts'], testTimeout: 300_000 } },
      {
        test: {
          name: 'browser',
          include: ['test/browser/**/*.test.ts'],
          globalSetup: ['test/browser/setup.ts'],
          // Long enough for a slow machine; a page that hangs still fails. (A poll gives up after a
          // second.)
          testTimeout: 300_000,
          hookTimeout: 600_000,
          expect: { poll: { timeout: 60_000 } },
          fileParallelism: false,
        },
      },
    ],
  },
});
