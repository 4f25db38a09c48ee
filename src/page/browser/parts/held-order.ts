import { useRef, useState } from 'preact/hooks';
import { usePage } from './page-context.ts';

/** A list that keeps its order while the pointer or the focus is in it. */
export interface HeldOrder<Row> {
  /** In the order that is held; one that has gone since is as it was last. */
  readonly rows: readonly Row[];
  /** Rows that came, went or moved since. */
  readonly pending: number;
  /** For the element of the list. */
  readonly hold: {
    readonly onPointerEnter: (event: PointerEvent) => void;
    readonly onPointerLeave: () => void;
    readonly onFocusIn: () => void;
    readonly onFocusOut: () => void;
  };
}

/** @param rows as they would be shown now. */
export function useHeldOrder<Row extends { readonly key: string }>(rows: readonly Row[]): HeldOrder<Row> {
  const { refresh, atMs, isCurrent } = usePage();
  const held = useRef<readonly Row[] | undefined>(undefined);
  const refreshed = useRef(refresh);
  const [isPointed, setPointed] = useState(false);
  const [isFocused, setFocused] = useState(false);
  // What was does not move, and another time is another list.
  const isHeld = (isPointed || isFocused) && atMs === undefined && isCurrent;
  if (refreshed.current !== refresh || !isHeld) held.current = undefined;
  refreshed.current = refresh;
  const order = held.current ?? rows;
  const byKey = new Map(rows.map((row) => [row.key, row]));
  const shown = held.current === undefined ? rows : order.map((row) => byKey.get(row.key) ?? row);
  if (isHeld) held.current = shown;
  return {
    rows: shown,
    pending: differences(shown, rows, byKey),
    hold: {
      // A finger that scrolls enters too, and never leaves.
      onPointerEnter: ({ pointerType }) => setPointed(pointerType === 'mouse'),
      onPointerLeave: () => setPointed(false),
      onFocusIn: () => setFocused(true),
      onFocusOut: () => setFocused(false),
    },
  };
}

function differences<Row extends { readonly key: string }>(
  shown: readonly Row[],
  rows: readonly Row[],
  byKey: ReadonlyMap<string, Row>,
): number {
  if (shown === rows) return 0;
  const known = new Set(shown.map(({ key }) => key));
  const gone = shown.filter(({ key }) => !byKey.has(key)).length;
  const come = rows.filter(({ key }) => !known.has(key)).length;
  const stayed = shown.filter(({ key }) => byKey.has(key));
  const now = rows.filter(({ key }) => known.has(key));
  return gone + come + stayed.filter(({ key }, index) => now[index]?.key !== key).length;
}
