import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks';
import { usePage } from './page-context.ts';

/** Rows above and below those in sight that are drawn too, in pixels. */
const margin = 400;

/** The part of a list that is drawn. */
interface Range {
  readonly from: number;
  readonly to: number;
}

/** How tall a line of a row is, in pixels: rows are counted in lines, and lines grow with the size of the text. */
export function lineHeightPx(): number {
  return Math.round(1.5 * Number.parseFloat(getComputedStyle(document.documentElement).fontSize));
}

/**
 * The rows of a list that are in sight, between spaces as tall as the others. The list scrolls with the page.
 *
 * @param heights of the rows, in pixels.
 */
export function useRowsInSight(heights: readonly number[]) {
  const list = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState<Range>({ from: 0, to: 40 });
  const look = (): void => {
    if (list.current === null) return;
    const top = -list.current.getBoundingClientRect().top;
    const next = rangeOf(heights, top - margin, top + innerHeight + margin);
    setRange((before) => (before.from === next.from && before.to === next.to ? before : next));
  };
  useLayoutEffect(look);
  useEffect(() => {
    addEventListener('scroll', look, { passive: true, capture: true });
    addEventListener('resize', look);
    return () => {
      removeEventListener('scroll', look, { capture: true });
      removeEventListener('resize', look);
    };
  });
  const from = Math.min(range.from, heights.length);
  const to = Math.min(range.to, heights.length);
  return { list, from, to, above: sum(heights, 0, from), below: sum(heights, to, heights.length) };
}

/** @param top and bottom of what is to be drawn, from the first row's top. */
function rangeOf(heights: readonly number[], top: number, bottom: number): Range {
  let y = 0;
  let from = 0;
  while (from < heights.length && y + (heights[from] ?? 0) < top) y += heights[from++] ?? 0;
  let to = from;
  while (to < heights.length && y < bottom) y += heights[to++] ?? 0;
  return { from, to };
}

function sum(heights: readonly number[], from: number, to: number): number {
  let all = 0;
  for (let index = from; index < to; index++) all += heights[index] ?? 0;
  return all;
}

/** As many rows as this are drawn without a virtual list. */
const drawnWhole = 60;

export interface Column<Row> {
  readonly title: string;
  /** A class for its width and look. */
  readonly class?: string;
  readonly cell: (row: Row) => ComponentChildren;
}

/** A table of more columns is cards where a page is not wide. */
const mostColumns = 6;

/**
 * A table of which the rows in sight are drawn: in a browser that is narrow, a card each.
 *
 * @param name for screen readers.
 */
export function Table<Row extends { readonly key: string }>(props: {
  readonly name: string;
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly rowClass?: (row: Row) => string;
  readonly class?: string;
}) {
  const { rows, columns } = props;
  const { width } = usePage();
  const isWhole = rows.length <= drawnWhole;
  const hasCards = width === 'narrow' || (width === 'medium' && columns.length > mostColumns);
  // How tall rows were when they were drawn, as their texts may take several lines; others are as these are on average.
  const drawn = useMemo(() => new Map<string, number>(), [width]);
  const usualHeight =
    drawn.size === 0
      ? lineHeightPx() + 14
      : [...drawn.values()].reduce((sum, height) => sum + height, 0) / drawn.size;
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const { list, from, to, above, below } = useRowsInSight(
    isWhole ? [] : rows.map(({ key }) => drawn.get(key) ?? usualHeight),
  );
  useLayoutEffect(() => {
    // A table that scrolls sideways has to be come to by keys.
    const box = list.current;
    if (box === null) return;
    const scrolls = box.scrollWidth > box.clientWidth;
    if (scrolls === box.hasAttribute('tabindex')) return;
    box.toggleAttribute('tabindex', scrolls);
    if (scrolls) box.tabIndex = 0;
  });
  const shown = isWhole ? rows : rows.slice(from, to);
  const first = isWhole ? 0 : from;
  useLayoutEffect(() => {
    if (isWhole || list.current === null) return;
    let differs = false;
    for (const [index, element] of list.current.querySelectorAll('tbody tr:not(.space)').entries()) {
      const { height } = element.getBoundingClientRect();
      const key = shown[index]?.key ?? '';
      if (drawn.get(key) === height) continue;
      drawn.set(key, height);
      differs = true;
    }
    if (differs) redraw(undefined);
  });
  return (
    <div
      ref={list}
      role="group"
      aria-label={`table: ${props.name}`}
      class={`table ${isWhole ? '' : 'virtual'} ${hasCards ? 'cards' : ''} ${props.class ?? ''}`}
    >
      <table aria-label={props.name} aria-rowcount={rows.length + 1}>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map(({ title, class: of }) => (
              <th key={title} scope="col" class={of}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {above > 0 && !isWhole && <Space height={above} />}
          {shown.map((row, index) => (
            <tr key={row.key} aria-rowindex={first + index + 2} class={props.rowClass?.(row)}>
              {columns.map(({ title, class: of, cell }) => (
                <td key={title} class={of} data-title={title}>
                  {hasCards ? <div>{cell(row)}</div> : cell(row)}
                </td>
              ))}
            </tr>
          ))}
          {below > 0 && !isWhole && <Space height={below} />}
        </tbody>
      </table>
    </div>
  );
}

function Space({ height }: { readonly height: number }) {
  return (
    <tr aria-hidden="true" class="space">
      <td style={{ height: `${height}px` }} />
    </tr>
  );
}
