import type { CustomResourceDefinition, JSONSchemaProps } from '../../../objects/apiextensions.generated.ts';
import { checkedFormat } from '../../../objects/formats.ts';

import { itemsOf, valuesOf } from '../schema/json-schema.ts';

/** The depth limit of schemas; deeper ones are refused before warnings are made. */
const maxDepth = 100;

/**
 * Warnings of unknown formats (apiextensions `registry/customresourcedefinition/strategy.go`), each once. An update
 * warns of formats that the stored definition does not have.
 */
export function formatWarnings(
  definition: CustomResourceDefinition,
  old?: CustomResourceDefinition,
): string[] {
  const before = old === undefined ? new Set() : unrecognizedFormats(old);
  return [...unrecognizedFormats(definition)]
    .filter((format) => !before.has(format))
    .map((format) => `unrecognized format ${JSON.stringify(format)}`);
}

function unrecognizedFormats({ spec }: CustomResourceDefinition): Set<string> {
  const found = new Set<string>();
  for (const { schema } of spec.versions ?? []) {
    if (schema?.openAPIV3Schema !== undefined) collect(schema.openAPIV3Schema, found, 0);
  }
  return found;
}

function collect(schema: JSONSchemaProps, found: Set<string>, depth: number): void {
  const { type = '', format = '' } = schema;
  if (format !== '' && checkedFormat(type, format) === '') found.add(format);
  if (depth === maxDepth) return;
  const parts = [
    itemsOf(schema),
    ...(schema.allOf ?? []),
    ...(schema.anyOf ?? []),
    ...(schema.oneOf ?? []),
    schema.not,
    ...Object.values(schema.properties ?? {}),
    valuesOf(schema),
  ];
  for (const part of parts) if (part !== undefined) collect(part, found, depth + 1);
}
