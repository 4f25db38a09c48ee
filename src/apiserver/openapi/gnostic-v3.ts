/** OpenAPI v3 documents as protobuf: field numbers of gnostic's `openapiv3/OpenAPIv3.proto`. */
import { isRecord, type JsonRecord } from '../../objects/json.ts';
import { WireWriter } from '../schema/wire-writer.ts';
import {
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

const reference = message(
  object([
    ['$ref', 1, text],
    ['summary', 2, text],
    ['description', 3, text],
  ]),
);

const ownSchema: WriteField = message((writer, value) => {
  schemaContent(writer, value);
});

/** `SchemaOrReference` */
const schema: WriteField = message((writer, value) => {
  if (isRecord(value) && value['$ref'] !== undefined) reference(writer, 2, value);
  else ownSchema(writer, 1, value);
});

/** `AdditionalPropertiesItem`: a schema, or whether there may be any. */
const additionalProperties: WriteField = message((writer, value) => {
  if (typeof value === 'boolean') writer.integer(2, Number(value));
  else schema(writer, 1, value);
});

/** `DefaultType` is empty for values that are neither number, truth nor text: gnostic knows no others. */
const defaultType: WriteField = message((writer, value) => {
  if (typeof value === 'number') writer.double(1, value);
  else if (typeof value === 'boolean') writer.integer(2, Number(value));
  else if (typeof value === 'string') writer.text(3, value);
});

const schemaContent: WriteContent = object(
  [
    ['nullable', 1, flag],
    ['externalDocs', 6, externalDocs],
    ['example', 7, any],
    ['title', 9, text],
    ['multipleOf', 10, double],
    ['maximum', 11, double],
    ['exclusiveMaximum', 12, flag],
    ['minimum', 13, double],
    ['exclusiveMinimum', 14, flag],
    ['maxLength', 15, whole],
    ['minLength', 16, whole],
    ['pattern', 17, text],
    ['maxItems', 18, whole],
    ['minItems', 19, whole],
    ['uniqueItems', 20, flag],
    ['maxProperties', 21, whole],
    ['minProperties', 22, whole],
    ['required', 23, texts],
    ['enum', 24, list(any)],
    ['type', 25, text],
    ['allOf', 26, list(schema)],
    ['oneOf', 27, list(schema)],
    ['anyOf', 28, list(schema)],
    ['not', 29, ownSchema],
    ['items', 30, message(only(1, schema))],
    ['properties', 31, map(schema)],
    ['additionalProperties', 32, additionalProperties],
    ['default', 33, defaultType],
    ['description', 34, text],
    ['format', 35, text],
  ],
  36,
);

/** `ParameterOrReference` with a `Parameter`. */
const parameter = message(
  only(
    1,
    message(
      object([
        ['name', 1, text],
        ['in', 2, text],
        ['description', 3, text],
        ['required', 4, flag],
        ['schema', 10, schema],
      ]),
    ),
  ),
);

const mediaTypes = map(message(object([['schema', 1, schema]])));

/** `RequestBodyOrReference` with a `RequestBody`. */
const requestBody = message(
  only(
    1,
    message(
      object([
        ['content', 2, mediaTypes],
        ['required', 3, flag],
      ]),
    ),
  ),
);

/** `ResponseOrReference` with a `Response`. */
const response = message(
  only(
    1,
    message(
      object([
        ['description', 1, text],
        ['content', 3, mediaTypes],
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
      ['parameters', 6, list(parameter)],
      ['requestBody', 7, requestBody],
      ['responses', 8, message(only(2, entries(response)))],
    ],
    13,
  ),
);

const pathItem = message(
  object([
    ['get', 4, operation],
    ['put', 5, operation],
    ['post', 6, operation],
    ['delete', 7, operation],
    ['patch', 10, operation],
    ['parameters', 13, list(parameter)],
  ]),
);

/** `SecuritySchemeOrReference` with a `SecurityScheme`. */
const securityScheme = message(
  only(
    1,
    message(
      object([
        ['type', 1, text],
        ['description', 2, text],
        ['name', 3, text],
        ['in', 4, text],
      ]),
    ),
  ),
);

const document = object([
  ['openapi', 1, text],
  [
    'info',
    2,
    message(
      object([
        ['title', 1, text],
        ['version', 6, text],
      ]),
    ),
  ],
  ['paths', 4, map(pathItem)],
  [
    'components',
    5,
    message(
      object([
        ['schemas', 1, map(schema)],
        ['securitySchemes', 7, map(securityScheme)],
      ]),
    ),
  ],
]);

/** What `openApiV3` builds as gnostic's `openapi_v3.Document`, as kube-openapi's `ToV3ProtoBinary` makes it. */
export function writeGnosticV3(value: JsonRecord): Buffer {
  const writer = new WireWriter();
  document(writer, value);
  return writer.take();
}
