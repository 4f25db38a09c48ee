import {
  isRecord,
  isStringList,
  jsonEqual,
  type JsonRecord,
  at,
  listAt,
  textAt,
} from '../../../objects/json.ts';
import type { DiscoveredResource } from '../discovered-resource.ts';
import type { KubeObject } from '../../../objects/meta.ts';

/**
 * - The schema of a custom resource as documents publish it.
 * - Component schemas of OpenAPI v3: those of built-in kinds, and those of custom resources.
 */

const metaReference = '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta';
const intOrString = [{ type: 'integer' }, { type: 'string' }];
const preservesUnknown = 'x-kubernetes-preserve-unknown-fields';
/** Deeper schemas are left as they are. */
const maxDepth = 100;

/** `apiVersion` and `kind` of any object. */
function typeMembers(): JsonRecord {
  return {
    apiVersion: {
      description: 'APIVersion defines the group and version that the object is written in.',
      type: 'string',
    },
    kind: { description: 'Kind is the type of the object, in CamelCase.', type: 'string' },
  };
}

/** `metadata` of any object. */
function metadataMember(): JsonRecord {
  return {
    metadata: {
      description: "Standard object's metadata: name, labels and other things that all objects have.",
      allOf: [{ $ref: metaReference }],
    },
  };
}

/**
 * A definition's schema as OpenAPI shows it: embedded resources have the properties of all resources
 * (apiextensions-apiserver `pkg/controller/openapi/builder` addEmbeddedProperties), and IntOrString is written with
 * standard keywords (`schema/unfold.go`).
 *
 * @param v2 for OpenAPI v2, which lacks these keywords, and in which objects that preserve unknown fields list no
 *   properties.
 */
export function publishedSchema(schema: JsonRecord, v2: boolean, depth = 0): JsonRecord {
  if (depth > maxDepth) return schema;
  const nested = (value: unknown) => (isRecord(value) ? publishedSchema(value, v2, depth + 1) : value);
  const { properties, items, additionalProperties, ...others } = schema;
  const { [preservesUnknown]: preserves, ...rest } = others;
  const result: JsonRecord = preserves === false ? rest : others;
  if (isRecord(properties)) {
    const members = Object.entries(properties).map(([name, property]) => [name, nested(property)] as const);
    result['properties'] = Object.fromEntries(members);
  }
  if (items !== undefined) result['items'] = nested(items);
  if (additionalProperties !== undefined) result['additionalProperties'] = nested(additionalProperties);
  if (!v2) unfoldIntOrString(result);
  const open = v2 && preserves === true;
  if (result['x-kubernetes-embedded-resource'] === true && !open) addEmbeddedProperties(result);
  return result;
}

function addEmbeddedProperties(schema: JsonRecord): void {
  const { properties, required } = schema;
  schema['properties'] = {
    ...(isRecord(properties) ? properties : {}),
    ...typeMembers(),
    ...metadataMember(),
  };
  const named = isStringList(required) ? required : [];
  schema['required'] = [...named, ...['kind', 'apiVersion'].filter((name) => !named.includes(name))];
}

function unfoldIntOrString(schema: JsonRecord): void {
  if (schema['x-kubernetes-int-or-string'] !== true) return;
  const { anyOf } = schema;
  const parts: unknown[] = Array.isArray(schema['allOf']) ? schema['allOf'] : [];
  const [first] = parts;
  if (jsonEqual(anyOf, intOrString) || (isRecord(first) && jsonEqual(first['anyOf'], intOrString))) return;
  if (anyOf === undefined) schema['anyOf'] = intOrString;
  else schema['allOf'] = [{ anyOf: intOrString }, ...parts];
}

/** Schemas by component name. */
export type Components = ReadonlyMap<string, JsonRecord>;

/** The parts of a definition's version that OpenAPI shows. */
export interface CustomVersion {
  /** The `openAPIV3Schema`; undefined where the definition has none. */
  readonly schema: unknown;
  /** Paths of selectable fields, such as `.spec.color`. */
  readonly selectableFields: readonly string[];
}

/** The schema of a custom resource; undefined when the resource is not custom. */
export type CustomSchema = (resource: DiscoveredResource) => CustomVersion | undefined;

/** The component prefix of meta/v1 types. */
export const metaV1 = 'io.k8s.apimachinery.pkg.apis.meta.v1';

const refPrefix = '#/components/schemas/';
/** References in deeper schemas are not followed. */
const maxComponentDepth = 100;

/** The components of built-in kinds, loaded with the first request for a document. */
export async function loadBuiltInComponents(): Promise<Components> {
  const module = await import('./components.generated.json', { with: { type: 'json' } });
  const schemas: unknown = module.default;
  const components = new Map<string, JsonRecord>();
  if (isRecord(schemas)) {
    for (const [name, schema] of Object.entries(schemas)) if (isRecord(schema)) components.set(name, schema);
  }
  // The body of a patch has no schema.
  components.set(`${metaV1}.Patch`, {
    type: 'object',
    description: 'A change to an object; the content type says its form.',
  });
  return components;
}

/** A reference to a component. */
export function reference(component: string): JsonRecord {
  return { $ref: `${refPrefix}${component}` };
}

/** The component that a reference names, undefined when it is none. */
export function referenced(ref: unknown): string | undefined {
  return typeof ref === 'string' && ref.startsWith(refPrefix) ? ref.slice(refPrefix.length) : undefined;
}

/**
 * The built-in components, those of the served custom resources, and lists of kinds that have no list component. Yields
 * between resources.
 */
export function* completeComponents(
  builtIn: Components,
  resources: readonly DiscoveredResource[],
  customSchema: CustomSchema,
): Generator<undefined, Components, undefined> {
  const components = new Map(builtIn);
  for (const resource of resources) {
    yield;
    const version = resource.custom ? customSchema(resource) : undefined;
    const selectable = selectableFields(version);
    if (resource.custom) {
      components.set(resource.schema, { ...customComponent(resource, version?.schema), ...selectable });
    }
    const list = listComponentOf(resource);
    if (resource.verbs.includes('list') && !components.has(list))
      components.set(list, { ...listComponent(resource), ...selectable });
  }
  return components;
}

/** The list component of a resource; definitions can name their list kind. */
export function listComponentOf({ schema, kind, listKind = `${kind}List` }: DiscoveredResource): string {
  return `${schema.slice(0, -kind.length)}${listKind}`;
}

function selectableFields(version: CustomVersion | undefined): JsonRecord {
  const paths = version?.selectableFields ?? [];
  const fields = paths.map((path) => ({ fieldPath: path.replace(/^\./, '') }));
  return fields.length === 0 ? {} : { 'x-kubernetes-selectable-fields': fields };
}

function groupVersionKind(resource: DiscoveredResource, kind = resource.kind): JsonRecord[] {
  return [{ group: resource.group, kind, version: resource.version }];
}

function listComponent(resource: DiscoveredResource): JsonRecord {
  return {
    description: `A list of ${resource.kind} objects.`,
    type: 'object',
    required: ['items'],
    properties: {
      ...typeMembers(),
      items: { description: 'The objects.', type: 'array', items: reference(resource.schema) },
      metadata: {
        description: 'The version of the store, and where the list goes on.',
        allOf: [reference(`${metaV1}.ListMeta`)],
      },
    },
    'x-kubernetes-group-version-kind': groupVersionKind(
      resource,
      resource.listKind ?? `${resource.kind}List`,
    ),
  };
}

/** The definition's schema with `apiVersion`, `kind` and `metadata`. */
function customComponent(resource: DiscoveredResource, schema: unknown): JsonRecord {
  const own: JsonRecord = isRecord(schema)
    ? schema
    : { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const properties = isRecord(own['properties']) ? own['properties'] : {};
  return {
    ...own,
    type: 'object',
    properties: { ...properties, ...typeMembers(), ...metadataMember() },
    'x-kubernetes-group-version-kind': groupVersionKind(resource),
  };
}

/**
 * Some components and all that they refer to, sorted by name. A missing one is an object without a schema. Yields
 * between components.
 */
export function* closure(
  components: Components,
  roots: Iterable<string>,
): Generator<undefined, [string, JsonRecord][], undefined> {
  const found = new Map<string, JsonRecord>();
  const pending = [...roots];
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    if (found.has(name)) continue;
    yield;
    const schema = components.get(name) ?? { type: 'object' };
    found.set(name, schema);
    collectReferences(schema, pending, 0);
  }
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1));
}

function collectReferences(value: unknown, into: string[], depth: number): void {
  if (depth > maxComponentDepth) return;
  if (Array.isArray(value)) {
    for (const item of value) collectReferences(item, into, depth + 1);
  } else if (isRecord(value)) {
    const component = referenced(value['$ref']);
    if (component !== undefined) into.push(component);
    for (const member of Object.values(value)) collectReferences(member, into, depth + 1);
  }
}

/** Schemas of custom resources from their definitions. @param get reads a CustomResourceDefinition by its name. */
export function definitionSchemas(get: (name: string) => KubeObject | undefined): CustomSchema {
  return ({ plural, group, version }) => {
    const versions = listAt(get(`${plural}.${group}`), 'spec', 'versions');
    const own = versions.find((candidate) => textAt(candidate, 'name') === version);
    return {
      schema: at(own, 'schema', 'openAPIV3Schema'),
      selectableFields: listAt(own, 'selectableFields').map((field) => textAt(field, 'jsonPath')),
    };
  };
}
