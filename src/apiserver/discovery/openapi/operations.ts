import type { DiscoveredResource, SubresourceRow } from '../discovered-resource.ts';
import { listComponentOf, metaV1 } from './components.ts';
import type { JsonRecord } from '../../../objects/json.ts';

/**
 * - The parameters of operations. The descriptions are not those of Kubernetes.
 * - The operations of resources, from which documents of both versions of OpenAPI are written. Operation ids are
 *   those of kube-apiserver (apiserver `pkg/endpoints/installer.go`), since the methods of generated clients are
 *   named after them.
 */

/** A parameter in the path or the query. */
export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly type: 'string' | 'integer' | 'boolean';
  readonly description: string;
}

function query(name: string, type: Parameter['type'], description: string): Parameter {
  return { name, in: 'query', type, description };
}

/** A string in the path. */
function pathParameter(name: string, description: string): Parameter {
  return { name, in: 'path', type: 'string', description };
}

/** Of all operations. */
const pretty = query('pretty', 'string', 'If true, the answer is indented.');

const dryRun = query('dryRun', 'string', 'All: everything is checked, nothing is stored.');
const fieldManager = query('fieldManager', 'string', 'The manager of the changed fields.');
const fieldValidation = query(
  'fieldValidation',
  'string',
  'What unknown and duplicate fields lead to: Ignore, Warn (a warning each, the default) or Strict (a refusal).',
);

/** Of creates and updates. */
const writeParameters: readonly Parameter[] = [dryRun, fieldManager, fieldValidation];

/** Of patches. */
const applyParameters: readonly Parameter[] = [
  ...writeParameters,
  query('force', 'boolean', 'Takes fields over from other managers. For apply patches only.'),
];

/** Of deletes. */
const deleteParameters: readonly Parameter[] = [
  dryRun,
  query('gracePeriodSeconds', 'integer', 'Seconds the object gets to end; 0 means at once.'),
  query('orphanDependents', 'boolean', 'Older form of propagationPolicy.'),
  query('propagationPolicy', 'string', 'What becomes of dependents: Orphan, Background or Foreground.'),
];

/** Of lists and watches. */
const listParameters: readonly Parameter[] = [
  query('allowWatchBookmarks', 'boolean', 'Asks for BOOKMARK events, which tell how far a watch is.'),
  query('continue', 'string', 'The page to go on with, as the page before named it.'),
  query('fieldSelector', 'string', 'Only objects with these field values.'),
  query('labelSelector', 'string', 'Only objects with these labels.'),
  query('limit', 'integer', 'At most so many objects; the answer tells how to go on.'),
  query('resourceVersion', 'string', 'The version of the store to list, or to watch from.'),
  query('resourceVersionMatch', 'string', 'Exact or NotOlderThan: how resourceVersion is meant.'),
  query(
    'sendInitialEvents',
    'boolean',
    'Begins a watch with the objects there are, and a bookmark behind them.',
  ),
  query('timeoutSeconds', 'integer', 'Seconds after which a list or watch ends.'),
  query('watch', 'boolean', 'Follows changes instead of listing.'),
];

type HttpMethod = 'get' | 'put' | 'post' | 'delete' | 'patch';

interface GroupVersionKind {
  readonly group: string;
  readonly kind: string;
  readonly version: string;
}

/** An operation on a path. */
export interface Operation {
  readonly method: HttpMethod;
  readonly id: string;
  readonly description: string;
  /** `x-kubernetes-action`. */
  readonly action: string;
  readonly kind: GroupVersionKind;
  readonly parameters: readonly Parameter[];
  readonly body?: {
    readonly component: string;
    readonly mediaTypes: readonly string[];
    readonly required: boolean;
  };
  /** Components of responses by status code; undefined for plain text. */
  readonly responses: readonly (readonly [code: number, component: string | undefined])[];
}

/** A path and its operations. */
export interface PathItem {
  readonly path: string;
  readonly tag: string;
  /** The parameters that all operations of the path have. */
  readonly parameters: readonly Parameter[];
  readonly operations: readonly Operation[];
}

/** Strategic merge patch is the last, since custom resources do not have it. */
const patchTypes = [
  'application/apply-patch+yaml',
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
];
const anyType = ['*/*'];

/** The parts of the ids, tags and paths of a resource's operations. */
interface Naming {
  readonly resource: DiscoveredResource;
  readonly kind: GroupVersionKind;
  readonly root: string;
  /** `CoreV1`. */
  readonly groupVersion: string;
  readonly tag: string;
}

/** The paths of a resource and its subresources. */
export function pathItemsOf(resource: DiscoveredResource): PathItem[] {
  const { group, version, plural, namespaced, schema } = resource;
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const words = groupWords(group);
  const naming: Naming = {
    resource,
    kind: { group, kind: resource.kind, version },
    root,
    groupVersion: `${words.map(capitalized).join('')}${capitalized(version)}`,
    tag: `${words.map((word, index) => (index === 0 ? word : capitalized(word))).join('')}_${version}`,
  };
  const collection = namespaced ? `${root}/namespaces/{namespace}/${plural}` : `${root}/${plural}`;
  const scope = namespaced ? [pathParameter('namespace', 'Namespace of the objects.')] : [];
  const object = [pathParameter('name', `Name of the ${resource.kind}.`), ...scope, pretty];
  const item = (
    path: string,
    parameters: readonly Parameter[],
    operations: readonly Operation[],
  ): PathItem[] => (operations.length === 0 ? [] : [{ path, tag: naming.tag, parameters, operations }]);
  return [
    ...item(collection, [...scope, pretty], collectionOperations(naming)),
    ...item(
      `${collection}/{name}`,
      object,
      objectOperations(naming, resource.verbs, schema, naming.kind, ''),
    ),
    ...(namespaced && resource.verbs.includes('list')
      ? item(
          `${root}/${plural}`,
          [...listParameters, pretty],
          [listOperation(naming, 'ForAllNamespaces', [])],
        )
      : []),
    ...resource.subresources.flatMap((row) =>
      item(`${collection}/{name}/${row.name}`, object, subresourceOperations(naming, row)),
    ),
  ];
}

/** The words of a group's name without `.k8s.io`: `core`, `apps`, `rbac authorization`, `stable example com`. */
function groupWords(group: string): string[] {
  return (group === '' ? 'core' : group.replace(/\.k8s\.io$/, '')).split(/[.-]/);
}

function capitalized(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1);
}

/** Such as `readCoreV1NamespacedServiceStatus`. */
function operationId(
  { groupVersion, resource }: Naming,
  verb: string,
  suffix: string,
  collection = '',
): string {
  const scope = resource.namespaced && suffix !== 'ForAllNamespaces' ? 'Namespaced' : '';
  return `${verb}${groupVersion}${collection}${scope}${resource.kind}${suffix}`;
}

function listOperation(naming: Naming, suffix: string, parameters: readonly Parameter[]): Operation {
  return {
    method: 'get',
    id: operationId(naming, 'list', suffix),
    description: `list or watch objects of kind ${naming.resource.kind}`,
    action: 'list',
    kind: naming.kind,
    parameters,
    responses: [[200, listComponentOf(naming.resource)]],
  };
}

function collectionOperations(naming: Naming): Operation[] {
  const { resource, kind } = naming;
  const operations: Operation[] = [];
  if (resource.verbs.includes('list')) operations.push(listOperation(naming, '', listParameters));
  if (resource.verbs.includes('create')) {
    operations.push({
      method: 'post',
      id: operationId(naming, 'create', ''),
      description: `create a ${resource.kind}`,
      action: 'post',
      kind,
      parameters: writeParameters,
      body: { component: resource.schema, mediaTypes: anyType, required: true },
      responses: [200, 201, 202].map((code) => [code, resource.schema] as const),
    });
  }
  if (resource.verbs.includes('deletecollection')) {
    operations.push({
      method: 'delete',
      id: operationId(naming, 'delete', '', 'Collection'),
      description: `delete a collection of ${resource.kind}`,
      action: 'deletecollection',
      kind,
      parameters: [...deleteParameters, ...listParameters.filter(({ name }) => name !== 'watch')],
      body: { component: `${metaV1}.DeleteOptions`, mediaTypes: anyType, required: false },
      responses: [[200, `${metaV1}.Status`]],
    });
  }
  return operations;
}

/**
 * The operations on an object or a subresource.
 *
 * @param component of the body and the response.
 * @param suffix of operation ids, for a subresource.
 */
function objectOperations(
  naming: Naming,
  verbs: readonly string[],
  component: string,
  kind: GroupVersionKind,
  suffix: string,
): Operation[] {
  const { resource } = naming;
  const what = suffix === '' ? '' : `${suffix.toLowerCase()} of `;
  const operations: Operation[] = [];
  const add = (operation: Omit<Operation, 'kind'>): void => void operations.push({ ...operation, kind });
  if (verbs.includes('get')) {
    add({
      method: 'get',
      id: operationId(naming, 'read', suffix),
      description: `read ${what}the specified ${resource.kind}`,
      action: 'get',
      parameters: [],
      responses: [[200, component]],
    });
  }
  if (verbs.includes('update')) {
    add({
      method: 'put',
      id: operationId(naming, 'replace', suffix),
      description: `replace ${what}the specified ${resource.kind}`,
      action: 'put',
      parameters: writeParameters,
      body: { component, mediaTypes: anyType, required: true },
      responses: [200, 201].map((code) => [code, component] as const),
    });
  }
  if (verbs.includes('create') && suffix !== '') {
    add({
      method: 'post',
      id: operationId(naming, 'create', suffix),
      description: `create ${what}the specified ${resource.kind}`,
      action: 'post',
      parameters: writeParameters,
      body: { component, mediaTypes: anyType, required: true },
      responses: [200, 201, 202].map((code) => [code, component] as const),
    });
  }
  if (verbs.includes('delete') && suffix === '') {
    add({
      method: 'delete',
      id: operationId(naming, 'delete', suffix),
      description: `delete the specified ${resource.kind}`,
      action: 'delete',
      parameters: deleteParameters,
      body: { component: `${metaV1}.DeleteOptions`, mediaTypes: anyType, required: false },
      responses: [200, 202].map((code) => [code, `${metaV1}.Status`] as const),
    });
  }
  if (verbs.includes('patch')) {
    const mediaTypes = resource.custom ? patchTypes.slice(0, -1) : patchTypes;
    add({
      method: 'patch',
      id: operationId(naming, 'patch', suffix),
      description: `change parts of ${what}the specified ${resource.kind}`,
      action: 'patch',
      parameters: applyParameters,
      body: { component: `${metaV1}.Patch`, mediaTypes, required: true },
      responses: [200, 201].map((code) => [code, component] as const),
    });
  }
  return operations;
}

const connectMethods: readonly (readonly [verb: string, method: HttpMethod])[] = [
  ['get', 'get'],
  ['update', 'put'],
  ['create', 'post'],
  ['delete', 'delete'],
  ['patch', 'patch'],
];

function subresourceOperations(naming: Naming, row: SubresourceRow): Operation[] {
  const { resource } = naming;
  const kind = {
    group: row.kindGroup ?? resource.group,
    kind: row.kind,
    version: row.kindVersion ?? resource.version,
  };
  const suffix = capitalized(row.name);
  if (!row.kind.endsWith('Options')) {
    return objectOperations(naming, row.verbs, subresourceComponent(resource, row), kind, suffix);
  }
  return connectMethods
    .filter(([verb]) => row.verbs.includes(verb))
    .map(([, method]) => ({
      method,
      id: operationId(naming, 'connect', suffix, capitalized(method)),
      description: `connect ${method.toUpperCase()} requests to ${row.name} of ${resource.kind}`,
      action: 'connect',
      kind,
      parameters: [],
      responses: [[200, undefined] as const],
    }));
}

function subresourceComponent(resource: DiscoveredResource, row: SubresourceRow): string {
  if (row.kind === resource.kind) return resource.schema;
  const group = row.kindGroup ?? resource.group;
  const packageName = group === '' ? 'core' : (group.split('.')[0] ?? group);
  return `io.k8s.api.${packageName}.${row.kindVersion ?? resource.version}.${row.kind}`;
}

/** Media types of responses with objects. */
export const answerTypes = ['application/json', 'application/yaml'];

/** A path item of a document. @param operationOf, parameterOf write the parts for the document's version. */
export function pathItem(
  { operations, parameters, tag }: PathItem,
  operationOf: (operation: Operation, tag: string) => JsonRecord,
  parameterOf: (parameter: Parameter) => JsonRecord,
): JsonRecord {
  return {
    ...Object.fromEntries(operations.map((operation) => [operation.method, operationOf(operation, tag)])),
    parameters: parameters.map(parameterOf),
  };
}
