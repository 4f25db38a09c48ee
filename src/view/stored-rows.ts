import type { RowKind, RowOfKind } from './rows/rows.ts';

/** The kinds of rows that are kept; others are made for who looks. */
export type KeptKind = Exclude<RowKind, 'serviceDetail' | 'flow' | 'flowGroup' | 'flowWatch' | 'journal'>;

/** Events that are kept, the newest. */
const maxEvents = 10_000;

/** A row, and its JSON, which is written once for all who get it. */
export interface StoredRow<Row> {
  readonly row: Row;
  readonly json: string;
}

/** Rows by kind and key; `Gone`: what stands for a row that is no more. */
type RowMaps<Gone> = { readonly [Kind in KeptKind]: Map<string, StoredRow<RowOfKind[Kind]> | Gone> };

export type Tables = { readonly [Kind in KeptKind]: ReadonlyMap<string, StoredRow<RowOfKind[Kind]>> };

export function rowsIn<Row>(table: ReadonlyMap<string, StoredRow<Row>>): readonly Row[] {
  return [...table.values()].map(({ row }) => row);
}

/** Rows that are others now; undefined: gone. */
export type RowChanges = RowMaps<undefined>;

function rowMaps<Gone>(): RowMaps<Gone> {
  return {
    ...{ service: new Map(), slice: new Map(), pod: new Map(), workload: new Map(), node: new Map() },
    ...{ policy: new Map(), namespace: new Map(), httpRule: new Map(), pool: new Map(), address: new Map() },
    ...{ waiting: new Map(), announcer: new Map(), egressAddress: new Map(), event: new Map() },
    problem: new Map(),
  };
}

/** Of a cluster of which nothing is known. */
export const noRows: Tables = rowMaps<never>();

/** Rows as they are, and which of them are others since they were last asked for. */
export class StoredRows {
  readonly #rows: RowMaps<never> = rowMaps();
  readonly #troubled: RowMaps<never> = rowMaps();
  #changes: RowChanges = rowMaps();

  get rows(): Tables {
    return this.#rows;
  }

  /** The rows that have a trouble: only these are looked at for problems. */
  get troubled(): Tables {
    return this.#troubled;
  }

  /** The rows that differ from what they were at the last call. */
  takeChanges(): RowChanges {
    const changes = this.#changes;
    this.#changes = rowMaps();
    return changes;
  }

  /** @param row undefined: it is gone. */
  set<Kind extends KeptKind>(kind: Kind, key: string, row: RowOfKind[Kind] | undefined): void {
    const table = this.#rows[kind];
    const changes = this.#changes[kind];
    if (row === undefined) {
      if (table.delete(key)) changes.set(key, undefined);
      this.#troubled[kind].delete(key);
      return;
    }
    const json = JSON.stringify(row);
    if (table.get(key)?.json === json) return;
    const stored = { row, json };
    table.set(key, stored);
    if ('trouble' in row) this.#troubled[kind].set(key, stored);
    else this.#troubled[kind].delete(key);
    changes.set(key, stored);
  }

  /** Replaces all rows of a kind. */
  setAll<Kind extends KeptKind>(kind: Kind, rows: readonly RowOfKind[Kind][]): void {
    const keys = new Set(rows.map(({ key }) => key));
    for (const key of this.#rows[kind].keys()) if (!keys.has(key)) this.set(kind, key, undefined);
    for (const row of rows) this.set(kind, row.key, row);
  }

  /** Takes the oldest Events beyond {@link maxEvents} away. */
  trimEvents(): void {
    const table = this.#rows.event;
    if (table.size <= maxEvents) return;
    const byTime = [...table].sort(([, a], [, b]) => (a.row.time < b.row.time ? -1 : 1));
    for (const [key] of byTime.slice(0, table.size - maxEvents)) this.set('event', key, undefined);
  }
}
