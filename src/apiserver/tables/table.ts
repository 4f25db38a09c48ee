import type { KubeObject, ListMeta } from '../../objects/meta.ts';

export interface TableColumn {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  readonly description: string;
  readonly priority: number;
}

/** How a kind is shown as a table. `now` is milliseconds since 1970. */
export interface TableConverter {
  readonly columns: readonly TableColumn[];
  cells(object: KubeObject, now: number): unknown[];
}

export type IncludeObject = 'None' | 'Metadata' | 'Object';

export interface TableRow {
  cells: unknown[];
  object: unknown;
}

export interface Table {
  kind: 'Table';
  apiVersion: 'meta.k8s.io/v1';
  metadata: ListMeta;
  /** null in all but the first event of a watch. */
  columnDefinitions: readonly TableColumn[] | null;
  rows: TableRow[];
}

export interface TableOptions {
  readonly includeObject: IncludeObject;
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly metadata: ListMeta;
  /** False leaves the column definitions out (watch events after the first). */
  readonly withColumns: boolean;
}

/** `includeObject` of a query. @throws {StatusError} 400 */
export function includeObjectOf(_query: URLSearchParams): IncludeObject {
  throw new Error('not built yet');
}

export function toTable(
  _converter: TableConverter,
  _objects: readonly KubeObject[],
  _options: TableOptions,
): Table {
  throw new Error('not built yet');
}
