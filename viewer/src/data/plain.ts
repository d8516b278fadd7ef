// Names of the profiled program as plain text. The page inserts text only as text, so markup in a
// name is harmless. This module handles characters that change the text around them.

// The same set as in the text report.
const CONTROLS = '\\u0000-\\u001f\\u007f-\\u009f';
const LINE_ENDS = '\\u2028\\u2029';
const BIDI = '\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069';
const WIDTHLESS = '\\u00ad\\u180e\\u200b-\\u200d\\u2060-\\u2065\\u206a-\\u206f\\ufeff';
const NOTES_AND_TAGS = '\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}';
const ACTIVE = new RegExp(`[${CONTROLS}${LINE_ENDS}${BIDI}${WIDTHLESS}${NOTES_AND_TAGS}]`, 'gu');

export function plain(text: string): string {
  return text.replace(ACTIVE, '\ufffd');
}

/** A title within a sentence: its first letter is small, unless the word is an abbreviation. */
export function inSentence(title: string): string {
  return title.replace(/^[A-Z](?![A-Z])/, (letter) => letter.toLowerCase());
}

/** Cuts the middle out of a text that is longer than `max` characters. */
export function shortened(text: string, max: number): string {
  if (text.length <= max) return text;
  const head = Math.floor((max - 1) * 0.4);
  const tail = max - 1 - head;
  // toWellFormed: a cut may fall between the halves of a character.
  return wellFormed(`${text.slice(0, head)}\u2026${text.slice(text.length - tail)}`);
}

function wellFormed(text: string): string {
  return text.replace(
    /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g,
    '\ufffd',
  );
}
