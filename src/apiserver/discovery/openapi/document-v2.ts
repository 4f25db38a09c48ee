import { isRecord, isStringList, type JsonRecord, jsonEqual } from '../../../objects/json.ts';
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
 * The OpenAPI v2 (Swagger) document of all served resources, with the schema keywords of v2, and its merge with those of
 * extension API servers.
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
  if (!isRecord(schema) || depth > maxDepth) return {};
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

/** Merges OpenAPI v2 documents of extension API servers into that of this server (kube-openapi `pkg/aggregator`). PURE. */

/** The part of an extension API server's document for one group version. */
export interface RemoteDocumentV2 {
  readonly paths: JsonRecord;
  readonly definitions: JsonRecord;
}

const refPrefix = '#/definitions/';

/**
 * The paths below a prefix, and the definitions without those that only other paths use
 * (`FilterSpecByPathsWithoutSideEffects`).
 *
 * @returns undefined where the document is not OpenAPI v2.
 */
export function partOfV2(document: unknown, prefix: string): RemoteDocumentV2 | undefined {
  if (!isRecord(document) || document['swagger'] !== '2.0') return undefined;
  const all = recordsOf(document['paths']);
  const definitions = recordsOf(document['definitions']);
  const paths = Object.fromEntries(Object.entries(all).filter(([path]) => path.startsWith(prefix)));
  const [before, after] = [usedBy(all, definitions), usedBy(paths, definitions)];
  return {
    paths,
    definitions: Object.fromEntries(
      Object.entries(definitions).filter(([name]) => after.has(name) || !before.has(name)),
    ),
  };
}

/**
 * Adds documents of extension API servers. Existing paths stay; a definition that differs from the existing one of its
 * name is renamed (`MergeSpecsIgnorePathConflictRenamingDefinitionsAndGVKs`). Yields between definitions and paths.
 */
export function* withRemoteV2(
  document: JsonRecord,
  remotes: readonly RemoteDocumentV2[],
): Generator<undefined, JsonRecord, undefined> {
  if (remotes.length === 0) return document;
  const paths: JsonRecord = { ...(isRecord(document['paths']) ? document['paths'] : {}) };
  const definitions: JsonRecord = { ...(isRecord(document['definitions']) ? document['definitions'] : {}) };
  for (const remote of remotes) {
    const names = new Map<string, string>();
    for (const [name, definition] of Object.entries(remote.definitions)) {
      names.set(name, freeName(definitions, name, definition));
      yield;
    }
    for (const [name, definition] of Object.entries(remote.definitions)) {
      definitions[names.get(name) ?? name] ??= renamed(definition, names);
      yield;
    }
    for (const [path, item] of Object.entries(remote.paths)) {
      paths[path] ??= renamed(item, names);
      yield;
    }
  }
  return { ...document, paths, definitions };
}

function recordsOf(value: unknown): JsonRecord {
  return Object.fromEntries(
    Object.entries(isRecord(value) ? value : {}).filter(([, each]) => isRecord(each)),
  );
}

/** The name, with a suffix if it has another definition already. */
function freeName(definitions: JsonRecord, name: string, definition: unknown): string {
  let free = name;
  for (
    let number = 2;
    Object.hasOwn(definitions, free) && !jsonEqual(definitions[free], definition);
    number++
  ) {
    free = `${name}_v${number}`;
  }
  return free;
}

function usedBy(paths: JsonRecord, definitions: JsonRecord): ReadonlySet<string> {
  const used = new Set<string>();
  const pending: unknown[] = [paths];
  while (pending.length > 0) {
    const value = pending.pop();
    if (Array.isArray(value)) for (const each of value) pending.push(each);
    if (!isRecord(value)) continue;
    for (const [member, each] of Object.entries(value)) {
      const name = member === '$ref' ? definitionOf(each) : undefined;
      if (name === undefined) pending.push(each);
      else if (!used.has(name)) {
        used.add(name);
        pending.push(definitions[name]);
      }
    }
  }
  return used;
}

function definitionOf(ref: unknown): string | undefined {
  return typeof ref === 'string' && ref.startsWith(refPrefix) ? ref.slice(refPrefix.length) : undefined;
}

function renamed(value: unknown, names: ReadonlyMap<string, string>): unknown {
  if (Array.isArray(value)) return value.map((each) => renamed(each, names));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([member, each]) => {
      const name = member === '$ref' ? definitionOf(each) : undefined;
      return [member, name === undefined ? renamed(each, names) : `${refPrefix}${names.get(name) ?? name}`];
    }),
  );
}
