import { timeSince } from './age.ts';
import { parseJsonPath } from './json-path.ts';
import { type TableConverter, ageOf, column, nameColumn, nameOf } from './table.ts';

/** `additionalPrinterColumns` of a CustomResourceDefinition version. */
export interface PrinterColumn {
  readonly name: string;
  readonly type: string;
  readonly format?: string;
  readonly description?: string;
  readonly priority?: number;
  readonly jsonPath: string;
}

const defaultTable: TableConverter = {
  columns: [nameColumn, column('Age', 'When the object was created.', { type: 'date' })],
  cells: (object, now) => [nameOf(object), ageOf(object, now)],
};

/**
 * The table of a custom resource (apiextensions-apiserver `pkg/registry/customresource/tableconvertor`): its name and
 * its own columns, or its name and age where it has none. A value that is missing or of another type than its column
 * is null.
 */
export function customTableConverter(columns: readonly PrinterColumn[]): TableConverter {
  if (columns.length === 0) return defaultTable;
  const paths = columns.map(({ jsonPath, type }) => ({ find: parseJsonPath(jsonPath), type }));
  return {
    columns: [
      nameColumn,
      ...columns.map(({ name, type, format = '', description = '', priority = 0, jsonPath }) => ({
        name,
        type,
        format,
        description:
          description === ''
            ? `Custom resource definition column (in JSONPath format): ${jsonPath}`
            : description,
        priority,
      })),
    ],
    cells: (object, now) => [
      nameOf(object),
      ...paths.map(({ find, type }) => cell(find?.(object)[0], type, now)),
    ],
  };
}

function cell(value: unknown, type: string, now: number): unknown {
  if (value === undefined || value === null) return null;
  switch (type) {
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : null;
    case 'number':
      return typeof value === 'number' ? value : null;
    case 'boolean':
      return typeof value === 'boolean' ? value : null;
    case 'date':
      if (typeof value !== 'string') return null;
      return Number.isNaN(Date.parse(value)) ? '<invalid>' : timeSince(value, now);
    default:
      return typeof value === 'string' ? value : JSON.stringify(value);
  }
}
