// Text that fits into a rectangle, without asking the canvas for the width of every string: the
// widths of characters are asked for once.

const ELLIPSIS = '\u2026';

export type Measure = (text: string) => number;

/** Names for labels; see Keys. */
export interface LabelNames {
  label(key: number): string;
  className(key: number): string;
  methodName(key: number): string;
  line(key: number): number;
}

interface Form {
  text: string;
  width: number;
}

export class Labels {
  private readonly widths = new Map<string, number>();
  private readonly cache = new Map<number, readonly Form[]>();

  constructor(
    private readonly measure: Measure,
    private readonly names: LabelNames,
  ) {}

  /**
   * The longest form of the key's name that fits into `room` pixels: the full name, class and
   * method, the method, or the beginning of the method. Empty if no form fits.
   */
  fit(key: number, room: number): string {
    const forms = this.forms(key);
    const form = forms.find((form) => form.width <= room);
    return form ? form.text : this.cut(forms[forms.length - 1]!.text, room);
  }

  private forms(key: number): readonly Form[] {
    let forms = this.cache.get(key);
    if (!forms) {
      const className = this.names.className(key);
      const simple = className.slice(className.lastIndexOf('.') + 1);
      const line = this.names.line(key);
      const method = this.names.methodName(key) + (line ? `:${line}` : '');
      // A library is not shortened like a class: its last part would be "so".
      const isClass = simple !== '' && !className.includes('.so') && !className.startsWith('[');
      const texts = [this.names.label(key), ...(isClass ? [`${simple}.${method}`] : []), method];
      forms = texts.map((text) => ({ text, width: this.widthOf(text) }));
      this.cache.set(key, forms);
    }
    return forms;
  }

  /** As many characters as fit, with a mark of the cut; at least two, else nothing. */
  private cut(text: string, room: number): string {
    let width = this.charWidth(ELLIPSIS);
    let end = 0;
    let chars = 0;
    for (const char of text) {
      width += this.charWidth(char);
      if (width > room) break;
      end += char.length;
      chars++;
    }
    return chars >= 2 ? text.slice(0, end) + ELLIPSIS : '';
  }

  private widthOf(text: string): number {
    let width = 0;
    for (const char of text) {
      width += this.charWidth(char);
      // Wider than any screen: how much wider does not matter.
      if (width > 20_000) break;
    }
    return width;
  }

  private charWidth(char: string): number {
    let width = this.widths.get(char);
    if (width === undefined) {
      width = this.measure(char);
      this.widths.set(char, width);
    }
    return width;
  }
}
