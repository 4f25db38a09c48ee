/**
 * Reads custom resources: pruning of undeclared fields, and metadata read as the typed ObjectMeta
 * (apiextensions-apiserver `apiserver/customresource_handler.go` unstructuredSchemaCoercer, `schema/pruning`).
 * Values of a wrong type stay: they are for validation to refuse.
 */
import { isRecord, type JsonRecord } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { builtinSchema } from './builtin.ts';
import { withoutRawNumbers } from './decode-leaf.ts';
import { decodeStruct } from './decode.ts';
import type { ParsedJson } from './parse-json.ts';
import { repeatedFields } from './repeated-fields.ts';
import { type Schema, setMember, type StructSchema } from './schema.ts';

/** Nesting below which nothing is declared any more: nobody's schema, only an attacker's value. */
const maxDepth = 1_000;

/**
 * The object without undeclared fields, and what Strict mode says of them, in path order.
 *
 * @throws {DecodeError} when metadata is not an ObjectMeta.
 */
export function pruneCustomObject(
  schema: StructSchema,
  parsed: ParsedJson,
): { object: KubeObject; strictErrors: readonly string[] } {
  const value = isRecord(parsed.value) ? parsed.value : {};
  const { object: metadata, strictErrors } = decodeStruct(objectMeta(), {
    ...parsed,
    value: value['metadata'] ?? {},
    repeated: undefined,
  });
  const unknown: string[] = [];
  const { metadata: _metadata, ...rest } = value;
  const pruned = prune(schema, withoutRawNumbers(rest), '', unknown, 0);
  const object: JsonRecord = isRecord(pruned) ? pruned : {};
  unknown.sort();
  return {
    object: { ...object, metadata },
    strictErrors: [
      ...repeatedFields(parsed),
      ...strictErrors.map((text) => text.replace('field "', 'field "metadata.')),
      ...unknown.map((path) => `unknown field ${JSON.stringify(path)}`),
    ],
  };
}

/** A copy of a value without the fields that its schema does not declare; `unknown` gets their paths. */
function prune(schema: Schema, value: unknown, path: string, unknown: string[], depth: number): unknown {
  if (depth > maxDepth) return value;
  if (Array.isArray(value)) {
    if (schema.type !== 'list') return value;
    return value.map((item, i) => prune(schema.items, item, `${path}[${i}]`, unknown, depth + 1));
  }
  if (!isRecord(value)) return value;
  if (schema.type === 'map') {
    const kept: JsonRecord = {};
    for (const [key, member] of Object.entries(value)) {
      setMember(kept, key, prune(schema.values, member, join(path, key), unknown, depth + 1));
    }
    return kept;
  }
  if (schema.type !== 'struct') return value;
  const kept: JsonRecord = {};
  for (const [key, member] of Object.entries(value)) {
    const field = schema.byName.get(key);
    if (field !== undefined) {
      setMember(kept, key, prune(field.schema, member, join(path, key), unknown, depth + 1));
    } else if (schema.custom?.embedded === true && impliedFields.has(key)) {
      setMember(kept, key, member);
    } else if (schema.custom?.keepUnknown === true) {
      setMember(kept, key, prune(schema.custom.unknownFields, member, join(path, key), unknown, depth + 1));
    } else {
      unknown.push(join(path, key));
    }
  }
  return kept;
}

const impliedFields = new Set(['apiVersion', 'kind', 'metadata']);

function objectMeta(): StructSchema {
  return builtinSchema('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta');
}

function join(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}
