/**
 * Reads protobuf bodies into the plain JSON that the same object would be (apimachinery
 * `serializer/protobuf/protobuf.go`). client-go's typed clients and controller-runtime send built-in kinds so.
 */
import { isRecord } from '../../../objects/json.ts';
import { parseJson } from '../json.ts';
import { type MessageField, messageOfKind, protobufMessage } from './wire.ts';
import { setMember } from '../schema.ts';
import { checkJsonSize, ValueCounter } from '../decode-walk.ts';
import { parseVersion, type GroupVersionKind } from '../builtin.ts';
import { ProtobufError, type WireValue, wireValues } from './wire.ts';

const prefix = Buffer.from([0x6b, 0x38, 0x73, 0x00]);
/** JSON schemas of custom resources nest; a client could send them nested without end. */
const maxDepth = 1000;

/** The part of a body that has been read. */
interface Reading {
  /** The messages that are open. */
  depth: number;
  readonly values: ValueCounter;
}

/**
 * The object in a body: kind and apiVersion as sent, and the fields of that kind. Fields that the kind lacks are
 * skipped, as protobuf has it.
 *
 * @param defaults kind and version for a body without them.
 * @throws {ProtobufError} for an invalid message.
 * @throws {JsonSyntaxError} for invalid raw JSON in it.
 * @throws {StatusError} 413 for too many values.
 */
export function parseProtobuf(bytes: Buffer, defaults: GroupVersionKind): Record<string, unknown> {
  if (bytes.length === 0) throw new ProtobufError('empty data');
  if (!bytes.subarray(0, prefix.length).equals(prefix)) {
    throw new ProtobufError(
      'provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]',
    );
  }
  if (bytes.length === prefix.length) throw new ProtobufError('empty body');
  let apiVersion = '';
  let kind = '';
  let raw: Buffer = Buffer.alloc(0);
  for (const value of wireValues(bytes.subarray(prefix.length))) {
    if (value.field === 1) ({ apiVersion, kind } = typeMeta(value));
    else if (value.field === 2) raw = delimitedBytes(value, 'Raw');
  }
  const { group, version } = apiVersion === '' ? defaults : parseVersion(apiVersion);
  const message = messageOfKind(group, version, kind === '' ? defaults.kind : kind);
  const object =
    message === undefined ? {} : readMessage(message, raw, { depth: 0, values: new ValueCounter() });
  return { ...object, apiVersion, kind };
}

function typeMeta(value: WireValue): { apiVersion: string; kind: string } {
  const found = { apiVersion: '', kind: '' };
  for (const part of wireValues(delimitedBytes(value, 'TypeMeta'))) {
    if (part.field === 1) found.apiVersion = part.bytes.toString('utf8');
    else if (part.field === 2) found.kind = part.bytes.toString('utf8');
  }
  return found;
}

function readMessage(name: string, bytes: Buffer, reading: Reading): Record<string, unknown> {
  const object: Record<string, unknown> = {};
  readInto(object, name, bytes, reading);
  return object;
}

function readInto(object: Record<string, unknown>, name: string, bytes: Buffer, reading: Reading): void {
  reading.depth += 1;
  if (reading.depth > maxDepth) throw new ProtobufError('exceeded max depth');
  const message = protobufMessage(name);
  for (const value of wireValues(bytes)) {
    reading.values.count();
    const field = message?.get(value.field);
    if (field === undefined) continue;
    if (field.name === undefined) readInto(object, field.type, delimitedBytes(value, field.type), reading);
    else readField(object, field.name, field, value, reading);
  }
  reading.depth -= 1;
}

function readField(
  object: Record<string, unknown>,
  name: string,
  field: MessageField,
  value: WireValue,
  reading: Reading,
): void {
  if (field.shape === 'one') {
    object[name] = readOne(field.type, value, name, reading);
  } else if (field.shape === 'list') {
    const list = Array.isArray(object[name]) ? object[name] : [];
    for (const item of readItems(field.type, value, name, reading)) list.push(item);
    object[name] = list;
  } else {
    const map = isRecord(object[name]) ? object[name] : {};
    const [key, member] = readEntry(field.type, value, name, reading);
    setMember(map, key, member);
    object[name] = map;
  }
}

/** Numbers may come packed. */
function readItems(type: string, value: WireValue, name: string, reading: Reading): unknown[] {
  if (type !== 'int' || value.wireType !== 2) return [readOne(type, value, name, reading)];
  const items: number[] = [];
  let rest = value.bytes;
  while (rest.length > 0) {
    reading.values.count();
    const length = rest.findIndex((byte) => byte < 128) + 1;
    // a tag in front makes a message of it
    const [item] = [
      ...wireValues(Buffer.concat([Buffer.of(8), rest.subarray(0, length === 0 ? 1 : length)])),
    ];
    items.push(integer(item?.number ?? 0n));
    rest = rest.subarray(length === 0 ? rest.length : length);
  }
  return items;
}

function readEntry(
  type: string,
  value: WireValue,
  name: string,
  reading: Reading,
): [key: string, member: unknown] {
  let key = '';
  let member: unknown;
  for (const part of wireValues(delimitedBytes(value, name))) {
    if (part.field === 1) key = delimitedBytes(part, name).toString('utf8');
    else if (part.field === 2) member = readOne(type, part, name, reading);
  }
  if (member !== undefined) return [key, member];
  return [key, type === 'string' || type === 'bytes' ? '' : {}];
}

function readOne(type: string, value: WireValue, name: string, reading: Reading): unknown {
  switch (type) {
    case 'string':
      return delimitedBytes(value, name).toString('utf8');
    case 'bytes':
      return delimitedBytes(value, name).toString('base64');
    case 'int':
      return integer(varintOf(value, name));
    case 'bool':
      return varintOf(value, name) !== 0n;
    case 'double':
      if (value.wireType !== 1) throw wrongType(value, name);
      return value.bytes.readDoubleLE();
    default: {
      const bytes = delimitedBytes(value, name);
      const special = specialMessages.get(type);
      return special === undefined ? readMessage(type, bytes, reading) : special(bytes, reading);
    }
  }
}

/** Messages that JSON writes in another way than field by field. */
const specialMessages = new Map<string, (bytes: Buffer, reading: Reading) => unknown>([
  ['meta.v1.Time', (bytes) => time(bytes, false)],
  ['meta.v1.MicroTime', (bytes) => time(bytes, true)],
  ['api.resource.Quantity', (bytes) => textField(bytes, 1)],
  ['util.intstr.IntOrString', intOrString],
  ['runtime.RawExtension', rawJson],
  ['apiextensions.v1.JSON', rawJson],
  ['meta.v1.FieldsV1', rawJson],
  ['meta.v1.Verbs', items],
  ['authorization.v1.ExtraValue', items],
  ['authentication.v1.ExtraValue', items],
  ['certificates.v1beta1.ExtraValue', items],
  ['apiextensions.v1.JSONSchemaPropsOrArray', (bytes, reading) => alternative(bytes, reading, 'OrArray')],
  ['apiextensions.v1.JSONSchemaPropsOrBool', (bytes, reading) => alternative(bytes, reading, 'OrBool')],
  [
    'apiextensions.v1.JSONSchemaPropsOrStringArray',
    (bytes, reading) => alternative(bytes, reading, 'OrStringArray'),
  ],
]);

/** An empty message is Go's zero time. */
function time(bytes: Buffer, micro: boolean): string | null {
  if (bytes.length === 0) return null;
  let seconds = 0;
  let nanoseconds = 0;
  for (const { field, number } of wireValues(bytes)) {
    if (field === 1) seconds = integer(number);
    else if (field === 2) nanoseconds = integer(number);
  }
  const date = new Date(seconds * 1000);
  if (Number.isNaN(date.getTime())) throw new ProtobufError('time out of range');
  const text = date.toISOString().slice(0, -5);
  const fraction = String(Math.floor(nanoseconds / 1000)).padStart(6, '0');
  return micro ? `${text}.${fraction}Z` : `${text}Z`;
}

function textField(bytes: Buffer, wanted: number): string {
  let text = '';
  for (const value of wireValues(bytes)) {
    if (value.field === wanted) text = delimitedBytes(value, 'String_').toString('utf8');
  }
  return text;
}

function intOrString(bytes: Buffer): string | number {
  let isText = false;
  let number = 0;
  for (const value of wireValues(bytes)) {
    if (value.field === 1) isText = value.number !== 0n;
    else if (value.field === 2) number = integer(value.number);
  }
  return isText ? textField(bytes, 3) : number;
}

function rawJson(bytes: Buffer): unknown {
  for (const value of wireValues(bytes)) {
    if (value.field !== 1 || value.bytes.length === 0) continue;
    checkJsonSize(value.bytes);
    return parseJson(value.bytes).value;
  }
  return null;
}

function items(bytes: Buffer, { values }: Reading): string[] {
  const found: string[] = [];
  for (const value of wireValues(bytes)) {
    values.count();
    if (value.field === 1) found.push(delimitedBytes(value, 'Items').toString('utf8'));
  }
  return found;
}

/** A schema, or a list of schemas, a boolean, or a list of names in its place. */
function alternative(bytes: Buffer, reading: Reading, suffix: string): unknown {
  const read = readMessage(`apiextensions.v1.JSONSchemaProps${suffix}`, bytes, reading);
  return (
    read['schema'] ??
    read['jSONSchemas'] ??
    read['property'] ??
    read['allows'] ??
    (suffix === 'OrBool' ? false : [])
  );
}

function delimitedBytes(value: WireValue, name: string): Buffer {
  if (value.wireType !== 2) throw wrongType(value, name);
  return value.bytes;
}

function varintOf(value: WireValue, name: string): bigint {
  if (value.wireType !== 0) throw wrongType(value, name);
  return value.number;
}

function wrongType(value: WireValue, name: string): ProtobufError {
  const goName = `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
  return new ProtobufError(`proto: wrong wireType = ${value.wireType} for field ${goName}`);
}

function integer(value: bigint): number {
  return Number(BigInt.asIntN(64, value));
}
