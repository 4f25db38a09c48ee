/**
 * Writes JSON values as the protobuf that kube-apiserver answers with (apimachinery `serializer/protobuf`), byte by
 * byte: Go writes some of the values that JSON leaves out because they are zero.
 */
import { isRecord, isStringList, type JsonRecord } from '../../../objects/json.ts';
import { notAcceptable } from '../../../objects/status.ts';
import { type MessageField, messageOfKind, protobufMessage, WireWriter } from './wire.ts';
import { parseVersion } from '../builtin.ts';

const prefix = Buffer.from('k8s\0');

/** kube-apiserver's message for kinds without protobuf. */
export const notMarshalable =
  'object *unstructured.Unstructured does not implement the protobuf marshalling interface and cannot be encoded to a protobuf message';

/**
 * An object, a list or a Status, in the envelope that names its kind.
 *
 * @throws {StatusError} 406 for a kind that has no protobuf.
 */
export function writeProtobuf(object: JsonRecord): Buffer {
  const writer = new WireWriter();
  writeEnvelope(writer, object);
  return writer.take();
}

/**
 * An item of a list as a field of it, to be put together by {@link writeProtobufList}: each on its own, so that a long
 * list can be written in slices of time.
 *
 * @param list the kind of the list.
 * @throws {StatusError} 406 for a kind that has no protobuf.
 */
export function writeProtobufItem({ apiVersion, kind }: ListKind, item: unknown): Buffer {
  const writer = new WireWriter();
  const found = descending(messageOf(apiVersion, kind)).find(([, { name }]) => name === 'items');
  if (found !== undefined) writeOne(writer, found[0], found[1].type, item);
  return writer.take();
}

/** A list in the envelope that names its kind. In all lists of Kubernetes the items come last. */
export function writeProtobufList(list: ListKind & JsonRecord, items: readonly Buffer[]): Buffer {
  const writer = new WireWriter();
  writeEnvelope(writer, list, Buffer.concat(items));
  return writer.take();
}

interface ListKind {
  readonly apiVersion: string;
  readonly kind: string;
}

/**
 * An event of a watch as a frame: its length in four bytes, and the event with the object in its envelope.
 *
 * @throws {StatusError} 406 for a kind that has no protobuf.
 */
export function writeProtobufEvent(type: string, object: JsonRecord): Buffer {
  const writer = new WireWriter();
  // WatchEvent is { type 1, object 2 }, RawExtension { raw 1 }
  writeEnvelope(writer, object);
  writer.delimit(1, 0);
  writer.delimit(2, 0);
  writer.text(1, type);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(writer.length);
  writer.raw(length);
  return writer.take();
}

/** `runtime.Unknown`: { typeMeta 1 { apiVersion 1, kind 2 }, raw 2, contentEncoding 3, contentType 4 } */
function writeEnvelope(
  writer: WireWriter,
  { apiVersion = '', kind = '', ...object }: JsonRecord,
  lastFields?: Buffer,
): void {
  if (typeof apiVersion !== 'string' || typeof kind !== 'string')
    throw unexpected('kind', { apiVersion, kind });
  const message = messageOf(apiVersion, kind);
  writer.text(4, '');
  writer.text(3, '');
  const body = writer.length;
  if (lastFields !== undefined) writer.raw(lastFields);
  writeMessage(writer, message, object);
  writer.delimit(2, body);
  const meta = writer.length;
  writer.text(2, kind);
  writer.text(1, apiVersion);
  writer.delimit(1, meta);
  writer.raw(prefix);
}

/** @throws {StatusError} 406 */
function messageOf(apiVersion: string, kind: string): string {
  const { group, version } = parseVersion(apiVersion);
  const message = messageOfKind(group, version, kind);
  if (message === undefined) throw notAcceptable(notMarshalable);
  return message;
}

function writeMessage(writer: WireWriter, name: string, object: JsonRecord): void {
  for (const [number, field] of descending(name)) {
    if (field.name === undefined) {
      // A message of Go only: it is there when it is held by value, or when one of its fields is.
      const before = writer.length;
      writeMessage(writer, field.type, object);
      if (field.always || writer.length > before) writer.delimit(number, before);
      continue;
    }
    const value = Object.hasOwn(object, field.name) ? object[field.name] : undefined;
    if (value !== undefined && value !== null) writeField(writer, number, field, value);
    else if (field.always) writeZero(writer, number, field.type);
  }
}

/** Writes the zero value of a field that Go holds by value. */
function writeZero(writer: WireWriter, number: number, type: string): void {
  switch (type) {
    case 'string':
    case 'bytes':
      writer.text(number, '');
      return;
    case 'int':
    case 'bool':
      writer.integer(number, 0);
      return;
    case 'double':
      writer.double(number, 0);
      return;
    default: {
      const before = writer.length;
      const special = zeroMessages.get(type);
      if (special !== undefined) special(writer);
      else if (!specialMessages.has(type)) writeMessage(writer, type, {});
      writer.delimit(number, before);
    }
  }
}

const fieldsOf = new Map<string, readonly (readonly [number, MessageField])[]>();

/** The fields of a message, the highest number first. */
function descending(name: string): readonly (readonly [number, MessageField])[] {
  let fields = fieldsOf.get(name);
  if (fields === undefined) {
    fields = [...(protobufMessage(name) ?? [])].sort(([a], [b]) => b - a);
    fieldsOf.set(name, fields);
  }
  return fields;
}

function writeField(writer: WireWriter, number: number, field: MessageField, value: unknown): void {
  if (field.shape === 'one') {
    writeOne(writer, number, field.type, value);
  } else if (field.shape === 'list') {
    if (!Array.isArray(value)) throw unexpected(field.type, value);
    for (const item of value.toReversed()) writeOne(writer, number, field.type, item);
  } else {
    if (!isRecord(value)) throw unexpected(field.type, value);
    // a map is a list of { key 1, value 2 }
    for (const key of Object.keys(value).sort().reverse()) {
      const before = writer.length;
      // bytes are the only values that can be nil
      if (value[key] !== null || field.type !== 'bytes') writeOne(writer, 2, field.type, value[key]);
      writer.text(1, key);
      writer.delimit(number, before);
    }
  }
}

function writeOne(writer: WireWriter, number: number, type: string, value: unknown): void {
  switch (type) {
    case 'string':
      if (typeof value !== 'string') throw unexpected(type, value);
      writer.text(number, value);
      return;
    case 'bytes':
      if (typeof value !== 'string') throw unexpected(type, value);
      writer.bytes(number, Buffer.from(value, 'base64'));
      return;
    case 'int':
    case 'bool':
      if (typeof value !== 'number' && typeof value !== 'boolean') throw unexpected(type, value);
      writer.integer(number, Number(value));
      return;
    case 'double':
      if (typeof value !== 'number') throw unexpected(type, value);
      writer.double(number, value);
      return;
    default: {
      const before = writer.length;
      const special = specialMessages.get(type);
      if (special !== undefined) special(writer, value);
      else if (isRecord(value)) writeMessage(writer, type, value);
      // null in a list or map is Go's zero value
      else if (value !== null) throw unexpected(type, value);
      writer.delimit(number, before);
    }
  }
}

/** Messages that JSON writes in another way than field by field; the counterpart of those in parse-protobuf.ts. */
const specialMessages = new Map<string, (writer: WireWriter, value: unknown) => void>([
  ['meta.v1.Time', writeTime],
  ['meta.v1.MicroTime', writeTime],
  ['api.resource.Quantity', (writer, value) => writeOne(writer, 1, 'string', value)],
  ['util.intstr.IntOrString', writeIntOrString],
  ['runtime.RawExtension', writeJson],
  ['apiextensions.v1.JSON', writeJson],
  ['meta.v1.FieldsV1', writeJson],
  ['meta.v1.Verbs', writeItems],
  ['authorization.v1.ExtraValue', writeItems],
  ['authentication.v1.ExtraValue', writeItems],
  ['certificates.v1beta1.ExtraValue', writeItems],
  ['apiextensions.v1.JSONSchemaPropsOrArray', writeSchemaOr('Array', 'jSONSchemas')],
  ['apiextensions.v1.JSONSchemaPropsOrBool', writeSchemaOr('Bool', 'allows')],
  ['apiextensions.v1.JSONSchemaPropsOrStringArray', writeSchemaOr('StringArray', 'property')],
]);

/** Messages whose zero value is not empty. */
const zeroMessages = new Map<string, (writer: WireWriter) => void>([
  ['api.resource.Quantity', (writer) => writer.text(1, '0')],
  ['util.intstr.IntOrString', (writer) => writeIntOrString(writer, 0)],
]);

/** Seconds and nanoseconds since 1970; Go's zero time is an empty message. */
function writeTime(writer: WireWriter, value: unknown): void {
  if (value === null) return;
  const milliseconds = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  if (typeof value !== 'string' || Number.isNaN(milliseconds)) throw unexpected('time', value);
  const [, fraction = ''] = /\.(\d{1,9})/.exec(value) ?? [];
  writer.integer(2, Number(fraction.padEnd(9, '0')));
  writer.integer(1, Math.floor(milliseconds / 1000));
}

function writeIntOrString(writer: WireWriter, value: unknown): void {
  writer.text(3, typeof value === 'string' ? value : '');
  writer.integer(2, typeof value === 'number' ? value : 0);
  writer.integer(1, typeof value === 'string' ? 1 : 0);
}

function writeJson(writer: WireWriter, value: unknown): void {
  writer.text(1, JSON.stringify(value));
}

function writeItems(writer: WireWriter, value: unknown): void {
  if (value === null) return;
  if (!isStringList(value)) throw unexpected('list of strings', value);
  for (const item of value.toReversed()) writer.text(1, item);
}

/** A schema, or what may stand in its place; a schema of additional properties allows them. */
function writeSchemaOr(suffix: string, other: string): (writer: WireWriter, value: unknown) => void {
  const message = `apiextensions.v1.JSONSchemaPropsOr${suffix}`;
  return (writer, value) =>
    writeMessage(writer, message, isRecord(value) ? { allows: true, schema: value } : { [other]: value });
}

function unexpected(type: string, value: unknown): TypeError {
  return new TypeError(`${JSON.stringify(value)} is no ${type}`);
}
