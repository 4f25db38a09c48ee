import { isRecord, type JsonRecord, listAt, recordAt, textAt } from '../../objects/json.ts';
import type { KubeObject, ListMeta, ObjectMeta } from '../../objects/meta.ts';
import type { MetaVersion } from '../http/negotiation.ts';
import { builtinSchema } from '../schema/builtin.ts';
import type { Schema } from '../schema/schema.ts';
import { badRequest } from '../../objects/status.ts';

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;

/**
 * A duration as `kubectl get` shows it (apimachinery `util/duration/duration.go`, HumanDuration). Down to minus two
 * seconds it is `0s`, since clocks differ.
 *
 * @param ms milliseconds.
 */
export function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / second);
  if (seconds < -1) return '<invalid>';
  if (seconds < 0) return '0s';
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(ms / minute);
  if (minutes < 10) return twoUnits(minutes, 'm', seconds % 60, 's');
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(ms / hour);
  if (hours < 8) return twoUnits(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return `${hours}h`;
  const days = Math.floor(hours / 24);
  if (hours < 24 * 8) return twoUnits(days, 'd', hours % 24, 'h');
  if (days < 365 * 2) return `${days}d`;
  const years = Math.floor(days / 365);
  return days < 365 * 8 ? twoUnits(years, 'y', days % 365, 'd') : `${years}y`;
}

function twoUnits(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit}${small}${smallUnit}`;
}

/** The time since a timestamp. @param timestamp RFC 3339, `<unknown>` for others. @param now milliseconds since 1970. */
export function timeSince(timestamp: unknown, now: number): string {
  const then = typeof timestamp === 'string' ? Date.parse(timestamp) : NaN;
  return Number.isNaN(then) ? '<unknown>' : humanDuration(now - then);
}

/** meta.k8s.io PartialObjectMetadata. */
export interface PartialObjectMetadata {
  kind: 'PartialObjectMetadata';
  apiVersion: `meta.k8s.io/${MetaVersion}`;
  metadata: ObjectMeta;
}

/** The metadata of an object. */
export function partialMetadata(object: KubeObject, version: MetaVersion): PartialObjectMetadata {
  return {
    kind: 'PartialObjectMetadata',
    apiVersion: `meta.k8s.io/${version}`,
    metadata: orderedMetadata(object.metadata),
  };
}

/** The metadata with its members in the order of Go's ObjectMeta. */
function orderedMetadata(metadata: ObjectMeta): ObjectMeta {
  const ordered = inFieldOrder(builtinSchema('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'), metadata);
  return isRecord(ordered) ? ordered : metadata;
}

function inFieldOrder(schema: Schema, value: unknown): unknown {
  if (schema.type === 'list' && Array.isArray(value))
    return value.map((item) => inFieldOrder(schema.items, item));
  if (schema.type !== 'struct' || !isRecord(value)) return value;
  const ordered: JsonRecord = {};
  for (const { name, schema: member } of schema.fields) {
    if (value[name] !== undefined) ordered[name] = inFieldOrder(member, value[name]);
  }
  return ordered;
}

/** meta.k8s.io PartialObjectMetadataList. */
export interface PartialObjectMetadataList {
  kind: 'PartialObjectMetadataList';
  apiVersion: `meta.k8s.io/${MetaVersion}`;
  metadata: ListMeta;
  items: PartialObjectMetadata[];
}

/** The metadata of a list of objects. */
export function partialMetadataList(
  objects: readonly KubeObject[],
  metadata: ListMeta,
  version: MetaVersion,
): PartialObjectMetadataList {
  return {
    kind: 'PartialObjectMetadataList',
    apiVersion: `meta.k8s.io/${version}`,
    metadata,
    items: objects.map((object) => partialMetadata(object, version)),
  };
}

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
  /** The converter of a whole list, where its rows depend on each other. */
  readonly ofList?: (objects: readonly KubeObject[]) => TableConverter;
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
  readonly nowMs: number;
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
        cells: converter.cells(object, options.nowMs),
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

/** A table with names first, and ages behind all other columns but the wide ones. @param cells without these two. */
export function namedTable(
  columns: readonly TableColumn[],
  cells: (object: KubeObject, now: number) => readonly unknown[],
): TableConverter {
  const firstWide = columns.findIndex(({ priority }) => priority > 0);
  const at = firstWide === -1 ? columns.length : firstWide;
  return {
    columns: [nameColumn, ...columns.toSpliced(at, 0, ageColumn)],
    cells: (object, now) => [nameOf(object), ...cells(object, now).toSpliced(at, 0, ageOf(object, now))],
  };
}

const none = '<none>';

/** Labels as `a=b,c=d`, sorted by key (apimachinery `labels.FormatLabels`). */
export function labelsText(labels: unknown): string {
  const parts = Object.entries(recordAt(labels))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${String(value)}`);
  return parts.length === 0 ? none : parts.join(',');
}

/** A label selector with its requirements sorted by key (apimachinery `meta/v1.FormatLabelSelector`). */
export function selectorText(selector: unknown): string {
  const requirements: { key: string; text: string }[] = [];
  for (const [key, value] of Object.entries(recordAt(selector, 'matchLabels'))) {
    requirements.push({ key, text: `${key}=${String(value)}` });
  }
  for (const expression of listAt(selector, 'matchExpressions')) {
    const key = textAt(expression, 'key');
    const values = listAt(expression, 'values').map(String).sort().join(',');
    const text = requirementText(key, textAt(expression, 'operator'), values);
    if (text === undefined) return '<error>';
    requirements.push({ key, text });
  }
  requirements.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  return requirements.length === 0 ? none : requirements.map(({ text }) => text).join(',');
}

function requirementText(key: string, operator: string, values: string): string | undefined {
  switch (operator) {
    case 'In':
      return `${key} in (${values})`;
    case 'NotIn':
      return `${key} notin (${values})`;
    case 'Exists':
      return key;
    case 'DoesNotExist':
      return `!${key}`;
    default:
      return undefined;
  }
}
