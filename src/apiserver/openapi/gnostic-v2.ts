/** The OpenAPI v2 document as protobuf: field numbers of gnostic's `openapiv2/OpenAPIv2.proto`. */
import { isRecord, type JsonRecord } from '../../objects/json.ts';
import { WireWriter } from '../schema/wire-writer.ts';
import {
  type Member,
  any,
  double,
  entries,
  externalDocs,
  flag,
  list,
  map,
  message,
  object,
  only,
  text,
  texts,
  whole,
  type WriteContent,
  type WriteField,
} from './gnostic-fields.ts';

const schema: WriteField = message((writer, value) => {
  schemaContent(writer, value);
});

/** `AdditionalPropertiesItem`: a schema, or whether there may be any. */
const additionalProperties: WriteField = message((writer, value) => {
  if (typeof value === 'boolean') writer.integer(2, Number(value));
  else schema(writer, 1, value);
});

const schemaContent: WriteContent = object(
  [
    ['$ref', 1, text],
    ['format', 2, text],
    ['title', 3, text],
    ['description', 4, text],
    ['default', 5, any],
    ['multipleOf', 6, double],
    ['maximum', 7, double],
    ['exclusiveMaximum', 8, flag],
    ['minimum', 9, double],
    ['exclusiveMinimum', 10, flag],
    ['maxLength', 11, whole],
    ['minLength', 12, whole],
    ['pattern', 13, text],
    ['maxItems', 14, whole],
    ['minItems', 15, whole],
    ['uniqueItems', 16, flag],
    ['maxProperties', 17, whole],
    ['minProperties', 18, whole],
    ['required', 19, texts],
    ['enum', 20, list(any)],
    ['additionalProperties', 21, additionalProperties],
    // a type may be several ones to gnostic; to Kubernetes it is one
    ['type', 22, message(only(1, text))],
    ['items', 23, message(only(1, schema))],
    ['allOf', 24, list(schema)],
    ['properties', 25, map(schema)],
    ['externalDocs', 29, externalDocs],
    ['example', 30, any],
  ],
  31,
);

const bodyParameter = message(
  object([
    ['description', 1, text],
    ['name', 2, text],
    ['in', 3, text],
    ['required', 4, flag],
    ['schema', 5, schema],
  ]),
);

const anyPlace: readonly Member[] = [
  ['required', 1, flag],
  ['in', 2, text],
  ['description', 3, text],
  ['name', 4, text],
];
const queryParameter = message(object([...anyPlace, ['type', 6, text], ['uniqueItems', 20, flag]]));
const pathParameter = message(object([...anyPlace, ['type', 5, text], ['uniqueItems', 19, flag]]));

const nonBodyParameter = message((writer, value) => {
  if (placeOf(value) === 'query') queryParameter(writer, 3, value);
  else pathParameter(writer, 4, value);
});

/** `ParametersItem` with a `Parameter`. */
const parameter = message(
  only(
    1,
    message((writer, value) => {
      if (placeOf(value) === 'body') bodyParameter(writer, 1, value);
      else nonBodyParameter(writer, 2, value);
    }),
  ),
);

function placeOf(value: unknown): unknown {
  return isRecord(value) ? value['in'] : undefined;
}

/** `ResponseValue` with a `Response`, its schema a `SchemaItem`. */
const response = message(
  only(
    1,
    message(
      object([
        ['description', 1, text],
        ['schema', 2, message(only(1, schema))],
      ]),
    ),
  ),
);

const operation = message(
  object(
    [
      ['tags', 1, texts],
      ['description', 3, text],
      ['operationId', 5, text],
      ['produces', 6, texts],
      ['consumes', 7, texts],
      ['parameters', 8, list(parameter)],
      ['responses', 9, map(response)],
      ['schemes', 10, texts],
    ],
    13,
  ),
);

const pathItem = message(
  object([
    ['get', 2, operation],
    ['put', 3, operation],
    ['post', 4, operation],
    ['delete', 5, operation],
    ['patch', 8, operation],
    ['parameters', 9, list(parameter)],
  ]),
);

/** `SecurityDefinitionsItem` with an `ApiKeySecurity`. */
const securityDefinition = message(
  only(
    2,
    message(
      object([
        ['type', 1, text],
        ['name', 2, text],
        ['in', 3, text],
        ['description', 4, text],
      ]),
    ),
  ),
);

const document = object([
  ['swagger', 1, text],
  [
    'info',
    2,
    message(
      object([
        ['title', 1, text],
        ['version', 2, text],
      ]),
    ),
  ],
  ['paths', 8, message(only(2, entries(pathItem)))],
  ['definitions', 9, map(schema)],
  ['security', 12, list(map(message(only(1, texts))))],
  ['securityDefinitions', 13, map(securityDefinition)],
]);

/** What `openApiV2` builds as gnostic's `openapi_v2.Document`, as kube-openapi's `ToProtoBinary` makes it of the JSON. */
export function writeGnosticV2(value: JsonRecord): Buffer {
  const writer = new WireWriter();
  document(writer, value);
  return writer.take();
}
