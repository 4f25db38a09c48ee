/** OpenAPI v3 documents as protobuf: field numbers of gnostic's `openapiv3/OpenAPIv3.proto`. */
import { isRecord } from '../../../objects/json.ts';
import {
  anyField,
  doubleField,
  entriesField,
  externalDocs,
  flagField,
  listField,
  mapField,
  messageField,
  object,
  only,
  textField,
  textsField,
  integerField,
  type WriteContent,
  type WriteField,
  additionalProperties,
  documentWriter,
} from './gnostic-fields.ts';

const reference = messageField(
  object([
    ['$ref', 1, textField],
    ['summary', 2, textField],
    ['description', 3, textField],
  ]),
);

const ownSchema: WriteField = messageField((writer, value) => schemaContent(writer, value));

/** `SchemaOrReference` */
const schema: WriteField = messageField((writer, value) =>
  isRecord(value) && value['$ref'] !== undefined ? reference(writer, 2, value) : ownSchema(writer, 1, value),
);

/** `DefaultType`: empty for values other than numbers, booleans and strings, which gnostic does not have. */
const defaultType: WriteField = messageField((writer, value) => {
  if (typeof value === 'number') writer.double(1, value);
  else if (typeof value === 'boolean') writer.integer(2, Number(value));
  else if (typeof value === 'string') writer.text(3, value);
});

const schemaContent: WriteContent = object(
  [
    ['nullable', 1, flagField],
    ['externalDocs', 6, externalDocs],
    ['example', 7, anyField],
    ['title', 9, textField],
    ['multipleOf', 10, doubleField],
    ['maximum', 11, doubleField],
    ['exclusiveMaximum', 12, flagField],
    ['minimum', 13, doubleField],
    ['exclusiveMinimum', 14, flagField],
    ['maxLength', 15, integerField],
    ['minLength', 16, integerField],
    ['pattern', 17, textField],
    ['maxItems', 18, integerField],
    ['minItems', 19, integerField],
    ['uniqueItems', 20, flagField],
    ['maxProperties', 21, integerField],
    ['minProperties', 22, integerField],
    ['required', 23, textsField],
    ['enum', 24, listField(anyField)],
    ['type', 25, textField],
    ['allOf', 26, listField(schema)],
    ['oneOf', 27, listField(schema)],
    ['anyOf', 28, listField(schema)],
    ['not', 29, ownSchema],
    ['items', 30, messageField(only(1, schema))],
    ['properties', 31, mapField(schema)],
    ['additionalProperties', 32, additionalProperties(schema)],
    ['default', 33, defaultType],
    ['description', 34, textField],
    ['format', 35, textField],
  ],
  36,
);

/** `ParameterOrReference` with a `Parameter`. */
const parameter = messageField(
  only(
    1,
    messageField(
      object([
        ['name', 1, textField],
        ['in', 2, textField],
        ['description', 3, textField],
        ['required', 4, flagField],
        ['schema', 10, schema],
      ]),
    ),
  ),
);

const mediaTypes = mapField(messageField(object([['schema', 1, schema]])));

/** `RequestBodyOrReference` with a `RequestBody`. */
const requestBody = messageField(
  only(
    1,
    messageField(
      object([
        ['content', 2, mediaTypes],
        ['required', 3, flagField],
      ]),
    ),
  ),
);

/** `ResponseOrReference` with a `Response`. */
const response = messageField(
  only(
    1,
    messageField(
      object([
        ['description', 1, textField],
        ['content', 3, mediaTypes],
      ]),
    ),
  ),
);

const operation = messageField(
  object(
    [
      ['tags', 1, textsField],
      ['description', 3, textField],
      ['operationId', 5, textField],
      ['parameters', 6, listField(parameter)],
      ['requestBody', 7, requestBody],
      ['responses', 8, messageField(only(2, entriesField(response)))],
    ],
    13,
  ),
);

const pathItem = messageField(
  object([
    ['get', 4, operation],
    ['put', 5, operation],
    ['post', 6, operation],
    ['delete', 7, operation],
    ['patch', 10, operation],
    ['parameters', 13, listField(parameter)],
  ]),
);

/** `SecuritySchemeOrReference` with a `SecurityScheme`. */
const securityScheme = messageField(
  only(
    1,
    messageField(
      object([
        ['type', 1, textField],
        ['description', 2, textField],
        ['name', 3, textField],
        ['in', 4, textField],
      ]),
    ),
  ),
);

const document = object([
  ['openapi', 1, textField],
  [
    'info',
    2,
    messageField(
      object([
        ['title', 1, textField],
        ['version', 6, textField],
      ]),
    ),
  ],
  ['paths', 4, mapField(pathItem)],
  [
    'components',
    5,
    messageField(
      object([
        ['schemas', 1, mapField(schema)],
        ['securitySchemes', 7, mapField(securityScheme)],
      ]),
    ),
  ],
]);

/**
 * Encodes a document of `openApiV3` as gnostic's `openapi_v3.Document`, as kube-openapi's `ToV3ProtoBinary` does.
 * Yields between steps.
 */
export const writeGnosticV3 = documentWriter(document);
