import { builtinSchema, registeredKind } from '../../src/apiserver/schema/builtin.ts';
import { decodeValue } from '../../src/apiserver/schema/decode.ts';
import { parseProtobuf } from '../../src/apiserver/schema/protobuf/parse-protobuf.ts';
import { parseVersion } from '../../src/apiserver/schema/builtin.ts';
import { isRecord, type JsonRecord } from '../../src/objects/json.ts';

/** An object in protobuf as a typed client shows it in JSON: what is empty there is left out here. */
export function readTypedObject(bytes: Buffer): JsonRecord {
  const object = parseProtobuf(bytes, { group: '', version: '', kind: '' });
  const { apiVersion, kind, metadata, items } = object;
  if (!String(kind).endsWith('List') || !Array.isArray(items))
    return typed(object, String(apiVersion), String(kind));
  const itemKind = String(kind).slice(0, -'List'.length);
  return {
    apiVersion,
    kind,
    metadata: withoutZeros(metadata),
    items: items.map((item: unknown) => (isRecord(item) ? typed(item, String(apiVersion), itemKind) : item)),
  };
}

function typed(object: JsonRecord, apiVersion: string, kind: string): JsonRecord {
  const { group, version } = parseVersion(apiVersion);
  const schema = registeredKind(group, version, kind)?.schema;
  if (schema !== undefined) return decodeValue(builtinSchema(schema), object).object;
  const rest = withoutZeros(object);
  return isRecord(rest) ? rest : {};
}

function withoutZeros(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutZeros);
  if (!isRecord(value)) return value;
  const kept = Object.entries(value).filter(([, member]) => Boolean(member));
  return Object.fromEntries(kept.map(([key, member]) => [key, withoutZeros(member)]));
}
