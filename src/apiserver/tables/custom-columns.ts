import { goJson } from '../../objects/go-text.ts';
import { timeSince } from './age.ts';
import { type JsonPath, parseJsonPath } from './json-path.ts';
import { type TableConverter, ageOf, column, nameColumn, nameOf } from './table.ts';
import type { CustomResourceColumnDefinition } from '../../objects/types/apiextensions.generated.ts';

const defaultTable: TableConverter = {
  columns: [nameColumn, column('Age', 'When the object was created.', { type: 'date' })],
  cells: (object, now) => [nameOf(object), ageOf(object, now)],
};

/**
 * The table of a custom resource (apiextensions-apiserver `pkg/registry/customresource/tableconvertor`): the name and
 * the columns of the definition, or name and age without any. A value that is missing or of another type is null.
 */
export function customTableConverter(columns: readonly CustomResourceColumnDefinition[]): TableConverter {
  if (columns.length === 0) return defaultTable;
  const paths: { find: JsonPath; type: string }[] = [];
  for (const { jsonPath, type } of columns) {
    const find = parseJsonPath(jsonPath);
    // An invalid path ends the table.
    if (find === undefined) break;
    paths.push({ find, type });
  }
  return {
    columns: [
      nameColumn,
      ...columns
        .slice(0, paths.length)
        .map(({ name, type, format = '', description = '', priority = 0, jsonPath }) => ({
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
      ...paths.map(({ find, type }) => cell(find(object)[0], type, now)),
    ],
  };
}

/** The format that Go's `time.RFC3339` parses. */
const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;

function cell(value: unknown, type: string, now: number): unknown {
  if (value === undefined) return null;
  // client-go prints a null value so.
  if (value === null) return type === 'string' ? '<no value>' : null;
  switch (type) {
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : null;
    case 'number':
      return typeof value === 'number' ? value : null;
    case 'boolean':
      return typeof value === 'boolean' ? value : null;
    case 'date':
      if (typeof value !== 'string') return null;
      if (value === '' || value === 'null') return '<unknown>';
      return rfc3339.test(value) && !Number.isNaN(Date.parse(value)) ? timeSince(value, now) : '<invalid>';
    default:
      return typeof value === 'string' ? value : goJson(value);
  }
}
