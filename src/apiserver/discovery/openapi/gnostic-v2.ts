/** The OpenAPI v2 document as protobuf: field numbers of gnostic's `openapiv2/OpenAPIv2.proto`. */
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
