// A table of rows with a heading of its own: the first column says what a row is of.
import type { ComponentChildren } from 'preact';
import { count } from '../data/format';

export interface RowColumn<R> {
  head: string;
  /** What the heading means, where that takes more words. */
  title?: string;
  /** Text begins at the left, numbers end at the right. */
  isText?: boolean;
  cell(row: R, at: number): ComponentChildren;
}

/** A part of a page with its heading. */
export function Section(props: { id: string; title: string; children: ComponentChildren }) {
  return (
    <section aria-labelledby={props.id}>
      <h2 id={props.id}>{props.title}</h2>
      {props.children}
    </section>
  );
}

export function RowTable<R>(props: {
  /** What a screen reader calls it. */
  label: string;
  /** The class that the style sheet and tests know it by, if it has one. */
  name?: string;
  columns: readonly RowColumn<R>[];
  rows: readonly R[];
  keyOf(row: R, at: number): string | number;
  /** More rows are not shown. */
  most: number;
  /** Whether it is said how many rows are not. */
  tellsMore?: boolean;
  /** The place of the chosen row. */
  current?: number;
}) {
  const { label, name, columns, rows, most } = props;
  return (
    <>
      <div class="wide" tabIndex={0} role="group" aria-label={label}>
        <table class={name === undefined ? 'rows' : `rows ${name}`}>
          <thead>
            <tr>
              {columns.map(({ head, title, isText }) => (
                <th key={head} scope="col" title={title} class={isText ? 'text' : undefined}>
                  {head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, most).map((row, at) => (
              <tr
                key={props.keyOf(row, at)}
                aria-current={at === props.current ? 'true' : undefined}
              >
                {columns.map(({ head, isText, cell }, place) =>
                  place === 0 ? (
                    <th key={head} scope="row">
                      {cell(row, at)}
                    </th>
                  ) : (
                    <td key={head} class={isText ? 'text' : undefined}>
                      {cell(row, at)}
                    </td>
                  ),
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {props.tellsMore && rows.length > most && (
        <p class="weak">and {count(rows.length - most)} more</p>
      )}
    </>
  );
}
