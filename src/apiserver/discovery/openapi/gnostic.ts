import { isRecord } from '../../../objects/json.ts';
import {
  type MemberField,
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

/**
 * - The OpenAPI v2 document as protobuf: field numbers of gnostic's `openapiv2/OpenAPIv2.proto`.
 * - OpenAPI v3 documents as protobuf: field numbers of gnostic's `openapiv3/OpenAPIv3.proto`.
 */

const schema: WriteField = messageField((writer, value) => schemaContent(writer, value));

const schemaContent: WriteContent = object(
  [
    ['$ref', 1, textField],
    ['format', 2, textField],
    ['title', 3, textField],
    ['description', 4, textField],
    ['default', 5, anyField],
    ['multipleOf', 6, doubleField],
    ['maximum', 7, doubleField],
    ['exclusiveMaximum', 8, flagField],
    ['minimum', 9, doubleField],
    ['exclusiveMinimum', 10, flagField],
    ['maxLength', 11, integerField],
    ['minLength', 12, integerField],
    ['pattern', 13, textField],
    ['maxItems', 14, integerField],
    ['minItems', 15, integerField],
    ['uniqueItems', 16, flagField],
    ['maxProperties', 17, integerField],
    ['minProperties', 18, integerField],
    ['required', 19, textsField],
    ['enum', 20, listField(anyField)],
    ['additionalProperties', 21, additionalProperties(schema)],
    // gnostic allows several types; schemas of Kubernetes have one.
    ['type', 22, messageField(only(1, textField))],
    ['items', 23, messageField(only(1, schema))],
    ['allOf', 24, listField(schema)],
    ['properties', 25, mapField(schema)],
    ['externalDocs', 29, externalDocs],
    ['example', 30, anyField],
  ],
  31,
);

const bodyParameter = messageField(
  object([
    ['description', 1, textField],
    ['name', 2, textField],
    ['in', 3, textField],
    ['required', 4, flagField],
    ['schema', 5, schema],
  ]),
);

const commonFields: readonly MemberField[] = [
  ['required', 1, flagField],
  ['in', 2, textField],
  ['description', 3, textField],
  ['name', 4, textField],
];
const queryParameter = messageField(
  object([...commonFields, ['type', 6, textField], ['uniqueItems', 20, flagField]]),
);
const pathParameter = messageField(
  object([...commonFields, ['type', 5, textField], ['uniqueItems', 19, flagField]]),
);

const nonBodyParameter = messageField((writer, value) =>
  locationOf(value) === 'query' ? queryParameter(writer, 3, value) : pathParameter(writer, 4, value),
);

/** `ParametersItem` with a `Parameter`. */
const parameter = messageField(
  only(
    1,
    messageField((writer, value) =>
      locationOf(value) === 'body' ? bodyParameter(writer, 1, value) : nonBodyParameter(writer, 2, value),
    ),
  ),
);

function locationOf(value: unknown): unknown {
  return isRecord(value) ? value['in'] : undefined;
}

/** `ResponseValue` with a `Response`, its schema a `SchemaItem`. */
const response = messageField(
  only(
    1,
    messageField(
      object([
        ['description', 1, textField],
        ['schema', 2, messageField(only(1, schema))],
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
      ['produces', 6, textsField],
      ['consumes', 7, textsField],
      ['parameters', 8, listField(parameter)],
      ['responses', 9, mapField(response)],
      ['schemes', 10, textsField],
    ],
    13,
  ),
);

const pathItem = messageField(
  object([
    ['get', 2, operation],
    ['put', 3, operation],
    ['post', 4, operation],
    ['delete', 5, operation],
    ['patch', 8, operation],
    ['parameters', 9, listField(parameter)],
  ]),
);

/** `SecurityDefinitionsItem` with an `ApiKeySecurity`. */
const securityDefinition = messageField(
  only(
    2,
    messageField(
      object([
        ['type', 1, textField],
        ['name', 2, textField],
        ['in', 3, textField],
        ['description', 4, textField],
      ]),
    ),
  ),
);

const document = object([
  ['swagger', 1, textField],
  [
    'info',
    2,
    messageField(
      object([
        ['title', 1, textField],
        ['version', 2, textField],
      ]),
    ),
  ],
  ['paths', 8, messageField(only(2, entriesField(pathItem)))],
  ['definitions', 9, mapField(schema)],
  ['security', 12, listField(mapField(messageField(only(1, textsField))))],
  ['securityDefinitions', 13, mapField(securityDefinition)],
]);

/**
 * Encodes a document of `openApiV2` as gnostic's `openapi_v2.Document`, as kube-openapi's `ToProtoBinary` does. Yields
 * between steps.
 */
export const writeGnosticV2 = documentWriter(document);

const reference = messageField(
  object([
    ['$ref', 1, textField],
    ['summary', 2, textField],
    ['description', 3, textField],
  ]),
);

const ownSchema: WriteField = messageField((writer, value) => schemaContentV3(writer, value));

/** `SchemaOrReference` */
const schemaV3: WriteField = messageField((writer, value) =>
  isRecord(value) && value['$ref'] !== undefined ? reference(writer, 2, value) : ownSchema(writer, 1, value),
);

/** `DefaultType`: empty for values other than numbers, booleans and strings, which gnostic does not have. */
const defaultType: WriteField = messageField((writer, value) => {
  if (typeof value === 'number') writer.double(1, value);
  else if (typeof value === 'boolean') writer.integer(2, Number(value));
  else if (typeof value === 'string') writer.text(3, value);
});

const schemaContentV3: WriteContent = object(
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
    ['allOf', 26, listField(schemaV3)],
    ['oneOf', 27, listField(schemaV3)],
    ['anyOf', 28, listField(schemaV3)],
    ['not', 29, ownSchema],
    ['items', 30, messageField(only(1, schemaV3))],
    ['properties', 31, mapField(schemaV3)],
    ['additionalProperties', 32, additionalProperties(schemaV3)],
    ['default', 33, defaultType],
    ['description', 34, textField],
    ['format', 35, textField],
  ],
  36,
);

/** `ParameterOrReference` with a `Parameter`. */
const parameterV3 = messageField(
  only(
    1,
    messageField(
      object([
        ['name', 1, textField],
        ['in', 2, textField],
        ['description', 3, textField],
        ['required', 4, flagField],
        ['schema', 10, schemaV3],
      ]),
    ),
  ),
);

const mediaTypes = mapField(messageField(object([['schema', 1, schemaV3]])));

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
const responseV3 = messageField(
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

const operationV3 = messageField(
  object(
    [
      ['tags', 1, textsField],
      ['description', 3, textField],
      ['operationId', 5, textField],
      ['parameters', 6, listField(parameterV3)],
      ['requestBody', 7, requestBody],
      ['responses', 8, messageField(only(2, entriesField(responseV3)))],
    ],
    13,
  ),
);

const pathItemV3 = messageField(
  object([
    ['get', 4, operationV3],
    ['put', 5, operationV3],
    ['post', 6, operationV3],
    ['delete', 7, operationV3],
    ['patch', 10, operationV3],
    ['parameters', 13, listField(parameterV3)],
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

const documentV3 = object([
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
  ['paths', 4, mapField(pathItemV3)],
  [
    'components',
    5,
    messageField(
      object([
        ['schemas', 1, mapField(schemaV3)],
        ['securitySchemes', 7, mapField(securityScheme)],
      ]),
    ),
  ],
]);

/**
 * Encodes a document of `openApiV3` as gnostic's `openapi_v3.Document`, as kube-openapi's `ToV3ProtoBinary` does.
 * Yields between steps.
 */
export const writeGnosticV3 = documentWriter(documentV3);
