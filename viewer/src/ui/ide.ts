// Links that open a method in an editor, by a setting that the browser keeps. The address consists
// of the source folder and the class name. An impossible class name gets no link.
import { signal } from '@preact/signals';

export type Ide = '' | 'idea' | 'vscode';

export const IDES: readonly [Ide, string][] = [
  ['', 'none'],
  ['idea', 'IntelliJ IDEA (idea://)'],
  ['vscode', 'VS Code (vscode://)'],
];

const KEY = 'dwell.ide';
const FOLDER_MAX = 1000;

export interface IdeSetting {
  ide: Ide;
  /** The folder of sources, as `/home/me/shop/src/main/java`. */
  folder: string;
}

export const ideSetting = signal<IdeSetting>(read());

function read(): IdeSetting {
  try {
    return settingOf(localStorage.getItem(KEY) ?? '');
  } catch {
    // A page may not keep anything.
    return settingOf('');
  }
}

/** The setting that a text holds, which anybody may have written. */
export function settingOf(text: string): IdeSetting {
  const at = text.indexOf(' ');
  const ide = IDES.find(([name]) => name === text.slice(0, Math.max(0, at)))?.[0] ?? '';
  return { ide, folder: text.slice(at + 1).slice(0, FOLDER_MAX) };
}

export function keepIde(setting: IdeSetting): void {
  ideSetting.value = setting;
  try {
    localStorage.setItem(KEY, `${setting.ide} ${setting.folder}`);
  } catch {
    // It holds until the page is closed.
  }
}

/** The address that opens a class at a line (0: unknown) in the editor; empty without an editor. */
export function ideLink({ ide, folder }: IdeSetting, className: string, line: number): string {
  const isClass = /^[\p{L}_][\p{L}\p{N}_.]*(?:\$[\p{L}\p{N}_$]*)?$/u.test(className);
  if (ide === '' || folder === '' || !isClass || className.includes('.so')) return '';
  const outer = className.split('$')[0]!;
  const path = `${folder.replace(/\/+$/, '')}/${outer.replaceAll('.', '/')}.java`;
  if (ide === 'vscode') return `vscode://file${encodeURI(path)}${line > 0 ? `:${line}` : ''}`;
  return `idea://open?file=${encodeURIComponent(path)}${line > 0 ? `&line=${line}` : ''}`;
}
