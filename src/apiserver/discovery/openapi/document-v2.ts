import { isRecord, isStringList, type JsonRecord } from '../../../objects/json.ts';
import {
  publishedSchema,
  type Components,
  closure,
  listComponentOf,
  metaV1,
  referenced,
} from './components.ts';
import type { DiscoveredResource } from '../discovered-resource.ts';
import { describeCode, documentInfo } from './document-v3.ts';
import { type Operation, pathItemsOf, pathItem, answerTypes, type Parameter } from './operations.ts';

/**
 * - The schemas of custom resources in OpenAPI v2.
 * - The OpenAPI v2 (Swagger) document of all served resources, with the schema keywords of v2.
 */

const groupVersionKind = 'x-kubernetes-group-version-kind';
const selectableFields = 'x-kubernetes-selectable-fields';
const preservesUnknown = 'x-kubernetes-preserve-unknown-fields';

/**
 * The component of a custom resource in OpenAPI v2: without properties where it preserves unknown fields, since kubectl
 * refuses fields that are not listed (apiextensions-apiserver `pkg/controller/openapi/builder`).
 */
export function customComponentV2(component: JsonRecord): JsonRecord {
  if (component[preservesUnknown] !== true) return publishedSchema(withoutV3(component, 0), true);
  const { [groupVersionKind]: kind, [selectableFields]: fields } = component;
  return {
    type: 'object',
    [groupVersionKind]: kind,
    ...(fields === undefined ? {} : { [selectableFields]: fields }),
  };
}

/** Keywords that v2 lacks, and those that are added to the result below. */
const rewritten: ReadonlySet<string> = new Set([
  ...['allOf', 'anyOf', 'oneOf', 'not', 'nullable', 'type', 'items', 'properties', 'required'],
]);

/** Deeper schemas are empty. */
const maxDepth = 100;

/**
 * A structural schema without features that v2 lacks or that kubectl cannot parse (apiextensions-apiserver
 * `pkg/controller/openapi/v2`, `ToStructuralOpenAPIV2`).
 */
function withoutV3(schema: unknown, depth: number): JsonRecord {
  if (!isRecord(schema) || depth > maxDepth) return {};
  if (isReference(schema)) return schema;
  const { nullable, type, items, properties, additionalProperties, required } = schema;
  const preserves = schema[preservesUnknown] === true;
  const open = nullable === true || preserves;
  const typeless =
    nullable === true ||
    (type === 'array' && (open || items === undefined)) ||
    (type === 'object' && preserves);
  const result = Object.fromEntries(Object.entries(schema).filter(([keyword]) => !rewritten.has(keyword)));
  if (type !== undefined && !typeless) result['type'] = type;
  if (!open && items !== undefined) result['items'] = withoutV3(items, depth + 1);
  if (!open && isRecord(properties)) {
    result['properties'] = Object.fromEntries(
      Object.entries(properties).map(([name, property]) => [name, withoutV3(property, depth + 1)]),
    );
  }
  if (isRecord(additionalProperties))
    result['additionalProperties'] = withoutV3(additionalProperties, depth + 1);
  // Nullable members are not required in v2.
  const isNullableMember = (name: string): boolean =>
    !open && isRecord(properties) && isNullable(properties[name]);
  const needed =
    isStringList(required) && !isNullable(additionalProperties)
      ? required.filter((name) => !isNullableMember(name))
      : [];
  if (needed.length > 0) result['required'] = needed;
  return result;
}

function isNullable(schema: unknown): boolean {
  return isRecord(schema) && schema['nullable'] === true;
}

/** True for the `metadata` of the component; schemas of definitions have no references. */
function isReference({ allOf }: JsonRecord): boolean {
  const only: unknown = Array.isArray(allOf) ? allOf[0] : undefined;
  return isRecord(only) && only['$ref'] !== undefined;
}

/** Deeper schemas are empty. */
const maxSchemaDepth = 100;

/** The document of all resources. Yields between components. */
export function* openApiV2(
  resources: readonly DiscoveredResource[],
  components: Components,
): Generator<undefined, JsonRecord, undefined> {
  const paths = resources.flatMap(pathItemsOf);
  const used = new Set([`${metaV1}.Status`, `${metaV1}.DeleteOptions`, `${metaV1}.Patch`]);
  for (const resource of resources) {
    used.add(resource.schema);
    if (resource.verbs.includes('list')) used.add(listComponentOf(resource));
  }
  for (const { operations } of paths) {
    for (const { responses } of operations)
      for (const [, name] of responses) if (name !== undefined) used.add(name);
  }
  const custom = new Set(resources.filter((resource) => resource.custom).map(({ schema }) => schema));
  const definitions: JsonRecord = {};
  for (const [name, schema] of yield* closure(components, used)) {
    definitions[name] = downgrade(custom.has(name) ? customComponentV2(schema) : schema, 0);
    yield;
  }
  return {
    swagger: '2.0',
    info: documentInfo(),
    paths: Object.fromEntries(paths.map((item) => [item.path, pathItem(item, operationOf, parameter)])),
    definitions,
    securityDefinitions: {
      BearerToken: { description: 'A bearer token.', type: 'apiKey', name: 'authorization', in: 'header' },
    },
    security: [{ BearerToken: [] }],
  };
}

function operationOf(operation: Operation, tag: string): JsonRecord {
  const { body } = operation;
  const parameters = [
    ...(body === undefined
      ? []
      : [
          {
            name: 'body',
            in: 'body',
            ...(body.required ? { required: true } : {}),
            schema: { $ref: `#/definitions/${body.component}` },
          },
        ]),
    ...operation.parameters.map(parameter),
  ];
  return {
    description: operation.description,
    consumes: body?.mediaTypes ?? ['*/*'],
    produces: operation.action === 'connect' ? ['*/*'] : answerTypes,
    schemes: ['https'],
    tags: [tag],
    operationId: operation.id,
    ...(parameters.length === 0 ? {} : { parameters }),
    responses: {
      ...Object.fromEntries(
        operation.responses.map(([code, component]) => [
          String(code),
          {
            description: describeCode(code),
            schema: component === undefined ? { type: 'string' } : { $ref: `#/definitions/${component}` },
          },
        ]),
      ),
      '401': { description: 'Unauthorized' },
    },
    'x-kubernetes-action': operation.action,
    'x-kubernetes-group-version-kind': operation.kind,
  };
}

function parameter({ name, in: place, type, description }: Parameter): JsonRecord {
  return {
    uniqueItems: true,
    type,
    description,
    name,
    in: place,
    ...(place === 'path' ? { required: true } : {}),
  };
}

/** Keywords that v2 lacks; kube-apiserver leaves them out as well (kube-openapi `pkg/schemaconv`). */
const unknownToV2: ReadonlySet<string> = new Set(['oneOf', 'anyOf', 'not', 'nullable']);

function downgrade(schema: unknown, depth: number): JsonRecord {
  if (!isRecord(schema) || depth > maxSchemaDepth) return {};
  const only: unknown =
    Array.isArray(schema['allOf']) && schema['allOf'].length === 1 ? schema['allOf'][0] : schema;
  const component = isRecord(only) ? referenced(only['$ref']) : undefined;
  if (component !== undefined) {
    const { description } = schema;
    return { ...(description === undefined ? {} : { description }), $ref: `#/definitions/${component}` };
  }
  const result: JsonRecord = {};
  for (const [keyword, value] of Object.entries(schema)) {
    if (unknownToV2.has(keyword)) continue;
    if (keyword === 'properties' && isRecord(value)) {
      result[keyword] = Object.fromEntries(
        Object.entries(value).map(([name, property]) => [name, downgrade(property, depth + 1)]),
      );
    } else if (keyword === 'items' || (keyword === 'additionalProperties' && isRecord(value))) {
      result[keyword] = downgrade(value, depth + 1);
    } else {
      result[keyword] = value;
    }
  }
  // Alternatives, such as a number or a string, are a string in v2.
  if (result['type'] === undefined && schema['oneOf'] !== undefined) result['type'] = 'string';
  return result;
}
