/**
 * The field types of gnostic's messages (`openapi_v2.Document`, `openapi_v3.Document`): how members of a JSON document
 * are written as protobuf fields. As in proto3, zero values are left out, except in a oneof. Fields are written in
 * reverse order, since a {@link WireWriter} writes backwards.
 */
import { isRecord, type JsonRecord } from '../../../objects/json.ts';
import { WireWriter } from '../../schema/protobuf/wire.ts';
import { yamlParts } from '../../schema/yaml/write-yaml.ts';

/** Writes in steps of some 10 ms at most, and yields between them; undefined where all is written. */
export type Steps = Generator<undefined, void, undefined> | undefined;

/** Writes a value as the field with a number; nothing for a value that is missing or of another type. */
export type WriteField = (writer: WireWriter, field: number, value: unknown) => Steps;

/** Writes a value as the content of a message. */
export type WriteContent = (writer: WireWriter, value: unknown) => Steps;

function* runSteps(steps: Steps): Generator<undefined, void, undefined> {
  if (steps !== undefined) yield* steps;
}

/** A member of a JSON object, the number of its field, and how it is written. */
export type MemberField = readonly [name: string, field: number, write: WriteField];

/** `string` */
export const textField: WriteField = (writer, field, value) => {
  if (typeof value === 'string' && value !== '') writer.text(field, value);
};

/** `bool` */
export const flagField: WriteField = (writer, field, value) => {
  if (value === true) writer.integer(field, 1);
};

/** `int64` */
export const integerField: WriteField = (writer, field, value) => {
  if (typeof value === 'number' && value !== 0) writer.integer(field, value);
};

/** `double` */
export const doubleField: WriteField = (writer, field, value) => {
  if (typeof value === 'number' && value !== 0) writer.double(field, value);
};

/** `repeated string`; empty strings are written. */
export const textsField: WriteField = (writer, field, value) => {
  if (!Array.isArray(value)) return;
  for (const item of value.toReversed()) if (typeof item === 'string') writer.text(field, item);
};

/** `Any`: any JSON value as YAML in field 2. */
export const anyField: WriteField = function* (writer, field, value) {
  if (value === undefined) return;
  const before = writer.length;
  let yaml = '';
  for (const part of yamlParts(value)) {
    if (yaml !== '') yield;
    yaml += part;
  }
  writer.text(2, yaml);
  writer.delimit(field, before);
};

/** A repeated field. */
export function listField(of: WriteField): WriteField {
  return function* (writer, field, value) {
    if (!Array.isArray(value)) return;
    for (const item of value.toReversed()) {
      yield* runSteps(of(writer, field, item));
      yield;
    }
  };
}

/** The members of an object as a repeated field of `Named…` messages: name 1, value 2. */
export function entriesField(of: WriteField): WriteField {
  return (writer, field, value) =>
    isRecord(value) ? writeEntries(writer, field, of, Object.entries(value)) : undefined;
}

function* writeEntries(
  writer: WireWriter,
  field: number,
  of: WriteField,
  named: readonly (readonly [string, unknown])[],
): Generator<undefined, void, undefined> {
  for (const [name, value] of named.toReversed()) {
    const before = writer.length;
    yield* runSteps(of(writer, 2, value));
    textField(writer, 1, name);
    writer.delimit(field, before);
    yield;
  }
}

/** A message that is a field of another one. */
export function messageField(content: WriteContent): WriteField {
  return function* (writer, field, value) {
    if (value === undefined) return;
    const before = writer.length;
    yield* runSteps(content(writer, value));
    writer.delimit(field, before);
  };
}

/** The content of a message that has one field. */
export function only(field: number, write: WriteField): WriteContent {
  return (writer, value) => write(writer, field, value);
}

/** A message for an object whose members are its only field, number 1. */
export function mapField(of: WriteField): WriteField {
  return messageField(only(1, entriesField(of)));
}

/**
 * The content of a message for an object.
 *
 * @param members in the order of their field numbers.
 * @param extensions the field of the members that begin with `x-`, which has the highest number.
 */
export function object(members: readonly MemberField[], extensions?: number): WriteContent {
  const reversed = members.toReversed();
  return function* (writer, value) {
    if (!isRecord(value)) return;
    if (extensions !== undefined) {
      const named = Object.entries(value).filter(([name]) => name.startsWith('x-'));
      yield* writeEntries(writer, extensions, anyField, named);
    }
    for (const [name, field, write] of reversed) yield* runSteps(write(writer, field, value[name]));
  };
}

/** `ExternalDocs`, the same in both versions. */
export const externalDocs = messageField(
  object([
    ['description', 1, textField],
    ['url', 2, textField],
  ]),
);

/** `AdditionalPropertiesItem`: a schema, or whether any are allowed. */
export function additionalProperties(schema: WriteField): WriteField {
  return messageField((writer, value) => {
    if (typeof value !== 'boolean') return schema(writer, 1, value);
    writer.integer(2, Number(value));
    return undefined;
  });
}

/** A writer of documents, which yields between steps. */
export function documentWriter(document: WriteContent) {
  return function* (value: JsonRecord): Generator<undefined, Buffer, undefined> {
    const writer = new WireWriter();
    yield* runSteps(document(writer, value));
    return writer.take();
  };
}
