// Links to an editor.
import { describe, expect, it } from 'vitest';
import { ideLink, settingOf } from '../../src/ui/ide';

describe('links to an editor', () => {
  const idea = { ide: 'idea' as const, folder: '/home/me/my app/src/' };
  const code = { ide: 'vscode' as const, folder: '/src' };

  it('name the file of the outermost class, and the line', () => {
    expect(ideLink(idea, 'a.b.Shop$Orders$1', 42)).toBe(
      'idea://open?file=%2Fhome%2Fme%2Fmy%20app%2Fsrc%2Fa%2Fb%2FShop.java&line=42',
    );
    expect(ideLink(code, 'a.b.Shop', 7)).toBe('vscode://file/src/a/b/Shop.java:7');
    expect(ideLink(code, 'Main', 0)).toBe('vscode://file/src/Main.java');
  });

  it('are none without a setting, and of what is no class', () => {
    expect(ideLink({ ide: '', folder: '/src' }, 'a.B', 1)).toBe('');
    expect(ideLink({ ide: 'idea', folder: '' }, 'a.B', 1)).toBe('');
    for (const name of [
      '',
      'libc.so.6',
      '[kernel]',
      'a/../../x',
      'a.B&x=1',
      '<img src=x>',
      'a b',
    ]) {
      expect(ideLink(code, name, 1), name).toBe('');
    }
  });

  it('come from a setting that anybody may have written', () => {
    expect(settingOf('vscode /a b/c')).toEqual({ ide: 'vscode', folder: '/a b/c' });
    expect(settingOf('javascript:alert(1) /x').ide).toBe('');
    expect(settingOf('')).toEqual({ ide: '', folder: '' });
  });
});
