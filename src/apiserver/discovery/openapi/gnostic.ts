import { isRecord, type JsonRecord } from '../../../objects/json.ts';
import { WireWriter } from '../../schema/protobuf/wire.ts';
import { yamlParts } from '../../schema/yaml/write-yaml.ts';

/**
 * OpenAPI documents as protobuf: the messages of gnostic's `openapiv2/OpenAPIv2.proto` and `openapiv3/OpenAPIv3.proto`.
 * As in proto3, zero values are left out, except in a oneof. Fields are written in reverse order, since a
 * {@link WireWriter} writes backwards.
 */

/** Writes in steps of some 10 ms at most, and yields between them; undefined where all is written. */
type Steps = Generator<undefined, void, undefined> | undefined;

/** Writes a value as the field with a number; nothing for a value that is missing or of another type. */
type WriteField = (writer: WireWriter, field: number, value: unknown) => Steps;

/** Writes a value as the content of a message. */
type WriteContent = (writer: WireWriter, value: unknown) => Steps;

function* runSteps(steps: Steps): Generator<undefined, void, undefined> {
  if (steps !== undefined) yield* steps;
}

/** A member of a JSON object, the number of its field, and how it is written. */
type MemberField = readonly [name: string, field: number, write: WriteField];

/** Members of one type, by the numbers of their fields. */
function fields(write: WriteField, numbers: Readonly<Record<string, number>>): readonly MemberField[] {
  return Object.entries(numbers).map(([name, field]) => [name, field, write]);
}

/** `string` */
const textField: WriteField = (writer, field, value) => {
  if (typeof value === 'string' && value !== '') writer.text(field, value);
};

/** `bool` */
const flagField: WriteField = (writer, field, value) => {
  if (value === true) writer.integer(field, 1);
};

/** `int64` */
const integerField: WriteField = (writer, field, value) => {
  if (typeof value === 'number' && value !== 0) writer.integer(field, value);
};

/** `double` */
const doubleField: WriteField = (writer, field, value) => {
  if (typeof value === 'number' && value !== 0) writer.double(field, value);
};

/** `repeated string`; empty strings are written. */
const textsField: WriteField = (writer, field, value) => {
  if (!Array.isArray(value)) return;
  for (const item of value.toReversed()) if (typeof item === 'string') writer.text(field, item);
};

/** `Any`: any JSON value as YAML in field 2. */
const anyField: WriteField = function* (writer, field, value) {
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
function listField(of: WriteField): WriteField {
  return function* (writer, field, value) {
    if (!Array.isArray(value)) return;
    for (const item of value.toReversed()) {
      yield* runSteps(of(writer, field, item));
      yield;
    }
  };
}

/** The members of an object as a repeated field of `Named…` messages: name 1, value 2. */
function entriesField(of: WriteField): WriteField {
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
function messageField(content: WriteContent): WriteField {
  return function* (writer, field, value) {
    if (value === undefined) return;
    const before = writer.length;
    yield* runSteps(content(writer, value));
    writer.delimit(field, before);
  };
}

/** A message that has one field. */
function wrapped(of: WriteField, field = 1): WriteField {
  return messageField((writer, value) => of(writer, field, value));
}

/** A message for an object whose members are its only field, number 1. */
function mapField(of: WriteField): WriteField {
  return wrapped(entriesField(of));
}

/**
 * The content of a message for an object.
 *
 * @param extensions the field of the members that begin with `x-`, which has the highest number.
 */
function contentOf(members: readonly MemberField[], extensions?: number): WriteContent {
  const reversed = members.toSorted(([, a], [, b]) => b - a);
  return function* (writer, value) {
    if (!isRecord(value)) return;
    if (extensions !== undefined) {
      const named = Object.entries(value).filter(([name]) => name.startsWith('x-'));
      yield* writeEntries(writer, extensions, anyField, named);
    }
    for (const [name, field, write] of reversed) yield* runSteps(write(writer, field, value[name]));
  };
}

/** A message for an object. */
function object(members: readonly MemberField[], extensions?: number): WriteField {
  return messageField(contentOf(members, extensions));
}

/** `ExternalDocs`, the same in both versions. */
const externalDocs = object(fields(textField, { description: 1, url: 2 }));

/** `AdditionalPropertiesItem`: a schema, or whether any are allowed. */
function additionalProperties(schema: WriteField): WriteField {
  return messageField((writer, value) => {
    if (typeof value !== 'boolean') return schema(writer, 1, value);
    writer.integer(2, Number(value));
    return undefined;
  });
}

const constraints: readonly (readonly [name: string, write: WriteField])[] = [
  ['multipleOf', doubleField],
  ['maximum', doubleField],
  ['exclusiveMaximum', flagField],
  ['minimum', doubleField],
  ['exclusiveMinimum', flagField],
  ['maxLength', integerField],
  ['minLength', integerField],
  ['pattern', textField],
  ['maxItems', integerField],
  ['minItems', integerField],
  ['uniqueItems', flagField],
  ['maxProperties', integerField],
  ['minProperties', integerField],
  ['required', textsField],
  ['enum', listField(anyField)],
];

/** What limits the values of a schema: consecutive fields in both versions. */
function constraintsFrom(first: number): readonly MemberField[] {
  return constraints.map(([name, write], i) => [name, first + i, write]);
}

/** A writer of documents, which yields between steps. */
function documentWriter(members: readonly MemberField[]) {
  const content = contentOf(members);
  return function* (document: JsonRecord): Generator<undefined, Buffer, undefined> {
    const writer = new WireWriter();
    yield* runSteps(content(writer, document));
    return writer.take();
  };
}

// Version 2.

const schema: WriteField = (writer, field, value) => ownSchemaV2(writer, field, value);

const ownSchemaV2: WriteField = object(
  [
    ...fields(textField, { $ref: 1, format: 2, title: 3, description: 4 }),
    ...fields(anyField, { default: 5, example: 30 }),
    ...constraintsFrom(6),
    ['additionalProperties', 21, additionalProperties(schema)],
    // gnostic allows several types; schemas of Kubernetes have one.
    ['type', 22, wrapped(textField)],
    ['items', 23, wrapped(schema)],
    ['allOf', 24, listField(schema)],
    ['properties', 25, mapField(schema)],
    ['externalDocs', 29, externalDocs],
  ],
  31,
);

const bodyParameter = object([
  ...fields(textField, { description: 1, name: 2, in: 3 }),
  ['required', 4, flagField],
  ['schema', 5, schema],
]);

const commonFields: readonly MemberField[] = [
  ['required', 1, flagField],
  ...fields(textField, { in: 2, description: 3, name: 4 }),
];
const queryParameter = object([...commonFields, ['type', 6, textField], ['uniqueItems', 20, flagField]]);
const pathParameter = object([...commonFields, ['type', 5, textField], ['uniqueItems', 19, flagField]]);

const nonBodyParameter = messageField((writer, value) =>
  locationOf(value) === 'query' ? queryParameter(writer, 3, value) : pathParameter(writer, 4, value),
);

/** `ParametersItem` with a `Parameter`. */
const parameter = wrapped(
  messageField((writer, value) =>
    locationOf(value) === 'body' ? bodyParameter(writer, 1, value) : nonBodyParameter(writer, 2, value),
  ),
);

function locationOf(value: unknown): unknown {
  return isRecord(value) ? value['in'] : undefined;
}

/** `ResponseValue` with a `Response`, its schema a `SchemaItem`. */
const response = wrapped(
  object([
    ['description', 1, textField],
    ['schema', 2, wrapped(schema)],
  ]),
);

const operation = object(
  [
    ...fields(textsField, { tags: 1, produces: 6, consumes: 7, schemes: 10 }),
    ...fields(textField, { description: 3, operationId: 5 }),
    ['parameters', 8, listField(parameter)],
    ['responses', 9, mapField(response)],
  ],
  13,
);

const pathItem = object([
  ...fields(operation, { get: 2, put: 3, post: 4, delete: 5, patch: 8 }),
  ['parameters', 9, listField(parameter)],
]);

/** `SecurityDefinitionsItem` with an `ApiKeySecurity`. */
const securityDefinition = wrapped(object(fields(textField, { type: 1, name: 2, in: 3, description: 4 })), 2);

/**
 * Encodes a document of `openApiV2` as gnostic's `openapi_v2.Document`, as kube-openapi's `ToProtoBinary` does. Yields
 * between steps.
 */
export const writeGnosticV2 = documentWriter([
  ['swagger', 1, textField],
  ['info', 2, object(fields(textField, { title: 1, version: 2 }))],
  ['paths', 8, wrapped(entriesField(pathItem), 2)],
  ['definitions', 9, mapField(schema)],
  ['security', 12, listField(mapField(wrapped(textsField)))],
  ['securityDefinitions', 13, mapField(securityDefinition)],
]);

// Version 3.

const reference = object(fields(textField, { $ref: 1, summary: 2, description: 3 }));

/** `SchemaOrReference` */
const schemaV3: WriteField = messageField((writer, value) =>
  isRecord(value) && value['$ref'] !== undefined
    ? reference(writer, 2, value)
    : ownSchemaV3(writer, 1, value),
);

/** `DefaultType`: empty for values other than numbers, booleans and strings, which gnostic does not have. */
const defaultType: WriteField = messageField((writer, value) => {
  if (typeof value === 'number') writer.double(1, value);
  else if (typeof value === 'boolean') writer.integer(2, Number(value));
  else if (typeof value === 'string') writer.text(3, value);
});

const ownSchemaV3: WriteField = object(
  [
    ['nullable', 1, flagField],
    ['externalDocs', 6, externalDocs],
    ['example', 7, anyField],
    ...fields(textField, { title: 9, type: 25, description: 34, format: 35 }),
    ...constraintsFrom(10),
    ...fields(listField(schemaV3), { allOf: 26, oneOf: 27, anyOf: 28 }),
    ['not', 29, (writer, field, value) => ownSchemaV3(writer, field, value)],
    ['items', 30, wrapped(schemaV3)],
    ['properties', 31, mapField(schemaV3)],
    ['additionalProperties', 32, additionalProperties(schemaV3)],
    ['default', 33, defaultType],
  ],
  36,
);

/** `ParameterOrReference` with a `Parameter`. */
const parameterV3 = wrapped(
  object([
    ...fields(textField, { name: 1, in: 2, description: 3 }),
    ['required', 4, flagField],
    ['schema', 10, schemaV3],
  ]),
);

const mediaTypes = mapField(object([['schema', 1, schemaV3]]));

/** `RequestBodyOrReference` with a `RequestBody`. */
const requestBody = wrapped(
  object([
    ['content', 2, mediaTypes],
    ['required', 3, flagField],
  ]),
);

/** `ResponseOrReference` with a `Response`. */
const responseV3 = wrapped(
  object([
    ['description', 1, textField],
    ['content', 3, mediaTypes],
  ]),
);

const operationV3 = object(
  [
    ['tags', 1, textsField],
    ...fields(textField, { description: 3, operationId: 5 }),
    ['parameters', 6, listField(parameterV3)],
    ['requestBody', 7, requestBody],
    ['responses', 8, wrapped(entriesField(responseV3), 2)],
  ],
  13,
);

const pathItemV3 = object([
  ...fields(operationV3, { get: 4, put: 5, post: 6, delete: 7, patch: 10 }),
  ['parameters', 13, listField(parameterV3)],
]);

/** `SecuritySchemeOrReference` with a `SecurityScheme`. */
const securityScheme = wrapped(object(fields(textField, { type: 1, description: 2, name: 3, in: 4 })));

/**
 * Encodes a document of `openApiV3` as gnostic's `openapi_v3.Document`, as kube-openapi's `ToV3ProtoBinary` does.
 * Yields between steps.
 */
export const writeGnosticV3 = documentWriter([
  ['openapi', 1, textField],
  ['info', 2, object(fields(textField, { title: 1, version: 6 }))],
  ['paths', 4, mapField(pathItemV3)],
  [
    'components',
    5,
    object([
      ['schemas', 1, mapField(schemaV3)],
      ['securitySchemes', 7, mapField(securityScheme)],
    ]),
  ],
]);
