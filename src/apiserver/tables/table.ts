import { badRequest } from '../../objects/status-errors.ts';
import type { KubeObject, ListMeta } from '../../objects/meta.ts';
import type { MetaVersion } from '../http/negotiation.ts';
import { timeSince } from './age.ts';
import { partialMetadata } from './partial-metadata.ts';

/** meta.k8s.io/v1 TableColumnDefinition. */
export interface TableColumn {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  readonly description: string;
  readonly priority: number;
}

/** Shows objects of a kind as a table. */
export interface TableConverter {
  readonly columns: readonly TableColumn[];
  /** The cells of a row, in the order of the columns. @param now milliseconds since 1970. */
  readonly cells: (object: KubeObject, now: number) => unknown[];
  /** The order of rows; absent for that of the list. */
  readonly order?: (a: KubeObject, b: KubeObject) => number;
  /** Conditions of a row, such as Completed of a Pod. */
  readonly conditions?: (object: KubeObject) => readonly TableRowCondition[] | undefined;
}

/** meta.k8s.io/v1 TableRowCondition. */
export interface TableRowCondition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

/** What a row has of its object. */
export type IncludeObject = 'None' | 'Metadata' | 'Object';

interface TableRow {
  cells: unknown[];
  conditions?: readonly TableRowCondition[];
  object: unknown;
}

/** meta.k8s.io Table; v1 and v1beta1 have the same members. */
export interface Table {
  kind: 'Table';
  apiVersion: `meta.k8s.io/${MetaVersion}`;
  metadata: ListMeta;
  /** null in all but the first event of a watch. */
  columnDefinitions: readonly TableColumn[] | null;
  rows: TableRow[];
}

/** The options of a table. */
export interface TableOptions {
  readonly includeObject: IncludeObject;
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly metadata: ListMeta;
  /** False for watch events after the first, which have no column definitions. */
  readonly withColumns: boolean;
  readonly version: MetaVersion;
  /** The object with its members in Go's order of fields, for `includeObject=Object`. */
  readonly inOrder: (object: KubeObject) => unknown;
}

/**
 * The `includeObject` of a query.
 *
 * @throws {StatusError} 400
 */
export function includeObjectOf(query: URLSearchParams): IncludeObject {
  const value = query.get('includeObject') ?? '';
  if (value === '') return 'Metadata';
  if (value === 'None' || value === 'Metadata' || value === 'Object') return value;
  throw badRequest(
    `Unable to convert to Table as requested: includeObject: Invalid value: ${JSON.stringify(value)}: must be 'Metadata', 'Object', 'None', or empty`,
  );
}

/** Objects as a table (apiserver `endpoints/handlers/response.go`, asTable). */
export function toTable(
  converter: TableConverter,
  objects: readonly KubeObject[],
  options: TableOptions,
): Table {
  return {
    kind: 'Table',
    apiVersion: `meta.k8s.io/${options.version}`,
    metadata: options.metadata,
    columnDefinitions: options.withColumns ? converter.columns : null,
    rows: (converter.order === undefined ? objects : objects.toSorted(converter.order)).map((object) => {
      const conditions = converter.conditions?.(object);
      return {
        cells: converter.cells(object, options.now),
        ...(conditions === undefined ? {} : { conditions }),
        object: included(object, options),
      };
    }),
  };
}

function included(object: KubeObject, { includeObject, version, inOrder }: TableOptions): unknown {
  switch (includeObject) {
    case 'None':
      return endsInitialEvents(object) ? partialMetadata(object, version) : null;
    case 'Metadata':
      return partialMetadata(object, version);
    case 'Object':
      return inOrder(object);
  }
}

/** True for the bookmark after the initial events, which has its object even with `includeObject=None`. */
function endsInitialEvents({ metadata: { annotations } }: KubeObject): boolean {
  return annotations?.['k8s.io/initial-events-end'] === 'true';
}

/** A column of a built-in kind's table. */
export function column(
  name: string,
  description: string,
  more: Partial<Pick<TableColumn, 'type' | 'format' | 'priority'>> = {},
): TableColumn {
  return {
    name,
    type: more.type ?? 'string',
    format: more.format ?? '',
    description,
    priority: more.priority ?? 0,
  };
}

/** A column that only `-o wide` shows. */
export function wideColumn(name: string, description: string): TableColumn {
  return column(name, description, { priority: 1 });
}

/** The name. */
export const nameColumn = column('Name', 'Name of the object, unique within its namespace.', {
  format: 'name',
});

/** The age. */
export const ageColumn = column('Age', 'The time since the object was created.');

/** The age of an object, for {@link ageColumn}. */
export function ageOf(object: KubeObject, now: number): string {
  return timeSince(object.metadata.creationTimestamp, now);
}

/** The name of an object, for {@link nameColumn}. */
export function nameOf(object: KubeObject): string {
  return object.metadata.name ?? '';
}
