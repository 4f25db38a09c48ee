import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Place } from '../state/place.ts';
import type { RowStore } from '../state/row-store.ts';

/** What every part of the page may need. */
export interface PageContext {
  readonly rows: RowStore;
  /** The rows are those of this view, even if it is still loading. */
  readonly isCurrent: boolean;
  readonly place: Place;
  /** Goes there. @param isReplacing the place before is not to be come back to, as while a filter is typed. */
  readonly go: (place: Place, isReplacing?: boolean) => void;
  /** Shows what a reason word means. */
  readonly explain: (reason: string) => void;
  /** When what is shown was so: milliseconds since 1970. Undefined: now. */
  readonly atMs: number | undefined;
  /** What ages count to: {@link atMs}, or else the present time. */
  readonly nowMs: number;
  /** Milliseconds since 1970, once a second while the page is seen. */
  readonly clockMs: number;
  /** Says it to screen readers, and shows it for a moment. */
  readonly announce: (sentence: string) => void;
  /** Another number after each wish to see the order of now. */
  readonly refresh: number;
  readonly refreshNow: () => void;
  /** How wide the page is: as drawn; without the column of nodes; a column of cards. */
  readonly width: 'wide' | 'medium' | 'narrow';
}

const context = createContext<PageContext | undefined>(undefined);

export const { Provider: PageProvider } = context;

export function usePage(): PageContext {
  const page = useContext(context);
  if (page === undefined) throw new Error('a part of the page is drawn outside of it');
  return page;
}
