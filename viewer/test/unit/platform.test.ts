import { expect, test } from 'vitest';
import { OF_PLATFORM, platformOf } from '../../src/data/platform';

test('a platform is known by its name', () => {
  expect(platformOf('Mono 6.8.0.105 (Debian)').name).toBe('Mono');
  for (const name of ['OpenJDK 64-Bit Server VM', '', 'Monolith']) {
    expect(platformOf(name).threads).toBe('Java threads');
  }
});

test('the class libraries are not the program’s', () => {
  for (const name of [
    'java.util.HashMap',
    'System.Threading.Thread',
    'object',
    'string',
    'uint16',
  ]) {
    expect(OF_PLATFORM.test(name), name).toBe(true);
  }
  for (const name of ['app.Main', 'Work', 'Systems.Main', 'objects', '']) {
    expect(OF_PLATFORM.test(name), name).toBe(false);
  }
});
