/**
 * What the tables of gnostic's messages are made of (`openapi_v2.Document`, `openapi_v3.Document`): how the parts of a
 * JSON document are written as fields. As proto3 has it, zero values are left out; only a oneof holds them.
 */
import { isRecord } from '../../objects/json.ts';
import type { WireWriter } from '../schema/wire-writer.ts';
import { writeYaml } from '../schema/write-yaml.ts';

/** Writes a value as a field of a number. A value that is missing or of another type writes nothing. */
export type WriteField = (writer: WireWriter, field: number, value: unknown) => void;

/** Writes a value as what is inside a message. */
export type WriteContent = (writer: WireWriter, value: unknown) => void;

/** A member of a JSON object, the number of its field, and how it is written. */
export type Member = readonly [name: string, field: number, write: WriteField];

export const text: WriteField = (writer, field, value) => {
  if (typeof value === 'string' && value !== '') writer.text(field, value);
};

export const flag: WriteField = (writer, field, value) => {
  if (value === true) writer.integer(field, 1);
};

/** int64 */
export const whole: WriteField = (writer, field, value) => {
  if (typeof value === 'number' && value !== 0) writer.integer(field, value);
};

export const double: WriteField = (writer, field, value) => {
  if (typeof value === 'number' && value !== 0) writer.double(field, value);
};

/** `repeated string`: empty ones count. */
export const texts: WriteField = (writer, field, value) => {
  if (!Array.isArray(value)) return;
  for (const item of value.toReversed()) if (typeof item === 'string') writer.text(field, item);
};

/** `Any`: any JSON value as a text in YAML, in field 2. */
export const any: WriteField = (writer, field, value) => {
  if (value === undefined) return;
  const before = writer.length;
  writer.text(2, writeYaml(value));
  writer.delimit(field, before);
};

/** A repeated field. */
export function list(of: WriteField): WriteField {
  return (writer, field, value) => {
    if (Array.isArray(value)) for (const item of value.toReversed()) of(writer, field, item);
  };
}

/** The members of an object as a repeated field of `Named…` messages: name 1, value 2. */
export function entries(of: WriteField): WriteField {
  return (writer, field, value) => {
    if (isRecord(value)) writeEntries(writer, field, of, Object.entries(value));
  };
}

function writeEntries(
  writer: WireWriter,
  field: number,
  of: WriteField,
  named: readonly (readonly [string, unknown])[],
): void {
  for (const [name, value] of named.toReversed()) {
    const before = writer.length;
    of(writer, 2, value);
    text(writer, 1, name);
    writer.delimit(field, before);
  }
}

/** A message that is a field of another one. */
export function message(content: WriteContent): WriteField {
  return (writer, field, value) => {
    if (value === undefined) return;
    const before = writer.length;
    content(writer, value);
    writer.delimit(field, before);
  };
}

/** The content of a message that has one field. */
export function only(field: number, write: WriteField): WriteContent {
  return (writer, value) => {
    write(writer, field, value);
  };
}

/** A message for an object whose members are a repeated field, the first and only one. */
export function map(of: WriteField): WriteField {
  return message(only(1, entries(of)));
}

/**
 * The content of a message for an object.
 *
 * @param members in the order of their fields, @param extensions the field of the members that begin with `x-`, which
 *   is higher than all others.
 */
export function object(members: readonly Member[], extensions?: number): WriteContent {
  const backwards = members.toReversed();
  return (writer, value) => {
    if (!isRecord(value)) return;
    if (extensions !== undefined) {
      const named = Object.entries(value).filter(([name]) => name.startsWith('x-'));
      writeEntries(writer, extensions, any, named);
    }
    for (const [name, field, write] of backwards) write(writer, field, value[name]);
  };
}

/** `ExternalDocs`, the same in both versions. */
export const externalDocs = message(
  object([
    ['description', 1, text],
    ['url', 2, text],
  ]),
);
