import type { DiscoveredResource, SubresourceRow } from './discovered-resource.ts';
import type { RemoteDocumentV2 } from './openapi/document-v2.ts';

/**
 * - The order of groups and versions in `/apis`, by which kubectl chooses among kinds of the same name.
 * - The discovery documents (apimachinery `meta/v1/types.go`) of the served resources, with the members in the order
 *   of kube-apiserver.
 */

/** The priorities in the spec of an APIService; the highest comes first. */
interface ApiPriority {
  readonly groupPriorityMinimum: number;
  readonly versionPriority: number;
}

/** Of built-in groups (`controlplane/apiserver/aggregator.go`, `cmd/kube-apiserver/app/aggregator.go`). */
const groupPriorities: ReadonlyMap<string, number> = new Map([
  ['', 18_000],
  ['apps', 17_800],
  ['events.k8s.io', 17_750],
  ['authentication.k8s.io', 17_700],
  ['authorization.k8s.io', 17_600],
  ['autoscaling', 17_500],
  ['batch', 17_400],
  ['certificates.k8s.io', 17_300],
  ['networking.k8s.io', 17_200],
  ['policy', 17_100],
  ['rbac.authorization.k8s.io', 17_000],
  ['storage.k8s.io', 16_800],
  ['admissionregistration.k8s.io', 16_700],
  ['apiextensions.k8s.io', 16_700],
  ['scheduling.k8s.io', 16_600],
  ['coordination.k8s.io', 16_500],
  ['node.k8s.io', 16_300],
  ['discovery.k8s.io', 16_200],
  ['resource.k8s.io', 16_200],
  ['flowcontrol.apiserver.k8s.io', 16_100],
  ['storagemigration.k8s.io', 15_800],
  // From openshift-apiserver-operator.
  ['route.openshift.io', 9900],
]);

/** Built-in group versions that do not have the {@link builtInVersionPriority}. */
const versionPriorities: ReadonlyMap<string, number> = new Map([
  ['/v1', 1],
  ['autoscaling/v2', 30],
  ['flowcontrol.apiserver.k8s.io/v1', 21],
  ['resource.k8s.io/v1', 21],
]);
const builtInVersionPriority = 15;

/** Of custom resources' group versions (`crdregistration_controller.go`). */
export const customPriority: ApiPriority = { groupPriorityMinimum: 1000, versionPriority: 100 };

/** kube-aggregator's own group, which comes first and has no APIService. */
export const aggregatorGroup = 'apiregistration.k8s.io';

/** The priorities of a built-in group version. */
export function builtInPriority(group: string, version: string): ApiPriority {
  return {
    groupPriorityMinimum: groupPriorities.get(group) ?? customPriority.groupPriorityMinimum,
    versionPriority: versionPriorities.get(`${group}/${version}`) ?? builtInVersionPriority,
  };
}

/**
 * By priority, then by name.
 *
 * @param remote the priorities of groups of extension API servers.
 */
function compareGroups(a: string, b: string, remote: ReadonlyMap<string, number>): number {
  return rank(b, remote) - rank(a, remote) || (a < b ? -1 : a > b ? 1 : 0);
}

function rank(group: string, remote: ReadonlyMap<string, number>): number {
  if (group === aggregatorGroup) return Infinity;
  return groupPriorities.get(group) ?? remote.get(group) ?? customPriority.groupPriorityMinimum;
}

/** A group version that an extension API server serves. */
export interface RemoteGroupVersion {
  readonly group: string;
  readonly version: string;
  /** The priority of the group. */
  readonly groupPriorityMinimum: number;
  /** Empty until the server has answered. */
  readonly resources: readonly DiscoveredResource[];
  /** Whether the server has answered and is available. */
  readonly isFresh: boolean;
  /** The address of its OpenAPI v3 document in the server's index; undefined for none. */
  readonly openApi: string | undefined;
  /** Its part of the server's OpenAPI v2 document; undefined for none. */
  readonly openApiV2: RemoteDocumentV2 | undefined;
}

interface GroupVersionForDiscovery {
  groupVersion: string;
  version: string;
}

interface ApiGroup {
  kind?: 'APIGroup';
  apiVersion?: 'v1';
  name: string;
  versions: GroupVersionForDiscovery[];
  preferredVersion: GroupVersionForDiscovery;
}

/** A group and its versions, the preferred one first. */
export interface DiscoveredGroup {
  readonly name: string;
  readonly custom: boolean;
  readonly versions: ReadonlyMap<string, readonly DiscoveredResource[]>;
  /** Versions whose extension API server is not available: their resources may be out of date. */
  readonly stale: ReadonlySet<string>;
}

interface MutableGroup {
  readonly custom: boolean;
  readonly versions: Map<string, DiscoveredResource[]>;
  readonly stale: Set<string>;
}

/** The served resources by group, in the order in which `/apis` lists them; the core group is "". */
export function groupResources(
  resources: readonly DiscoveredResource[],
  remote: readonly RemoteGroupVersion[],
): Map<string, DiscoveredGroup> {
  const groups = new Map<string, MutableGroup>();
  const groupOf = (name: string, custom: boolean): MutableGroup => {
    let group = groups.get(name);
    if (group === undefined) {
      group = { custom, versions: new Map(), stale: new Set() };
      groups.set(name, group);
    }
    return group;
  };
  const priorities = new Map<string, number>();
  for (const resource of resources) {
    const { versions } = groupOf(resource.group, resource.custom);
    const rows = versions.get(resource.version);
    if (rows === undefined) versions.set(resource.version, [resource]);
    else rows.push(resource);
  }
  for (const { group: name, version, resources: rows, isFresh, groupPriorityMinimum } of remote) {
    const { versions, stale } = groupOf(name, true);
    versions.set(version, [...rows]);
    if (!isFresh) stale.add(version);
    priorities.set(name, Math.max(priorities.get(name) ?? 0, groupPriorityMinimum));
  }
  const ordered = [...groups].sort(([a], [b]) => compareGroups(a, b, priorities));
  return new Map(
    ordered.map(([name, { custom, versions, stale }]) => {
      const byPriority = [...versions].sort(([a], [b]) => compareVersions(a, b));
      return [name, { name, custom, versions: new Map(byPriority), stale }];
    }),
  );
}

/**
 * Kubernetes' order of versions: GA before beta before alpha, the newer first, anything else last by name
 * (apimachinery `util/version/version.go`, CompareKubeAwareVersionStrings, reversed).
 */
export function compareVersions(a: string, b: string): number {
  const left = versionRank(a);
  const right = versionRank(b);
  if (left === undefined || right === undefined) {
    if (left !== undefined) return -1;
    if (right !== undefined) return 1;
    return a < b ? -1 : a > b ? 1 : 0;
  }
  return right.stage - left.stage || right.major - left.major || right.minor - left.minor;
}

function versionRank(version: string): { stage: number; major: number; minor: number } | undefined {
  const match = /^v(\d{1,9})(?:(alpha|beta)(\d{1,9}))?$/.exec(version);
  if (match === null) return undefined;
  const [, major, stage, minor] = match;
  return {
    stage: stage === undefined ? 2 : stage === 'beta' ? 1 : 0,
    major: Number(major),
    minor: Number(minor ?? 0),
  };
}

/** The document at `/api`. @param address host and port of the server. */
export function apiVersions(core: DiscoveredGroup | undefined, address: string): unknown {
  return {
    kind: 'APIVersions',
    versions: [...(core?.versions.keys() ?? [])],
    serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: address }],
  };
}

/** The document at `/apis/<group>`. */
export function apiGroup(group: DiscoveredGroup): ApiGroup {
  return { kind: 'APIGroup', apiVersion: 'v1', ...groupEntry(group) };
}

/** The document at `/apis`. */
export function apiGroupList(groups: readonly DiscoveredGroup[]): unknown {
  return { kind: 'APIGroupList', apiVersion: 'v1', groups: groups.map(groupEntry) };
}

function groupEntry(group: DiscoveredGroup): ApiGroup {
  const versions = [...group.versions.keys()].map((version) => ({
    groupVersion: `${group.name}/${version}`,
    version,
  }));
  const [preferredVersion = { groupVersion: '', version: '' }] = versions;
  return { name: group.name, versions, preferredVersion };
}

/** The document at `/api/v1`, which has no apiVersion, and at `/apis/<group>/<version>`, which has one. */
export function apiResourceList(
  group: string,
  version: string,
  resources: readonly DiscoveredResource[],
): unknown {
  return {
    kind: 'APIResourceList',
    ...(group === '' ? {} : { apiVersion: 'v1' }),
    groupVersion: group === '' ? version : `${group}/${version}`,
    resources: inDiscoveryOrder(
      resources.flatMap((resource) => [
        ...(resource.verbs.length === 0 ? [] : [resourceRow(resource)]),
        ...resource.subresources.map((row) => subresourceRow(resource, row)),
      ]),
      resources.some(({ custom }) => custom),
    ),
  };
}

/** Built-in resources by name; custom ones in their own order, with `/status` before `/scale`. */
function inDiscoveryOrder(rows: readonly ApiResource[], custom: boolean): readonly ApiResource[] {
  if (custom) return rows;
  return rows.toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

/** A row of an APIResourceList. */
interface ApiResource {
  name: string;
  singularName: string;
  namespaced: boolean;
  group?: string;
  version?: string;
  kind: string;
  verbs: readonly string[];
  shortNames?: readonly string[];
  categories?: readonly string[];
  storageVersionHash?: string;
}

function resourceRow(resource: DiscoveredResource): ApiResource {
  const { shortNames, categories, storageVersionHash } = resource;
  return {
    name: resource.plural,
    singularName: resource.singular,
    namespaced: resource.namespaced,
    kind: resource.kind,
    verbs: resource.verbs,
    ...(shortNames.length === 0 ? {} : { shortNames }),
    ...(categories.length === 0 ? {} : { categories }),
    ...(storageVersionHash === undefined ? {} : { storageVersionHash }),
  };
}

function subresourceRow(resource: DiscoveredResource, row: SubresourceRow): ApiResource {
  return {
    name: `${resource.plural}/${row.name}`,
    singularName: '',
    namespaced: resource.namespaced,
    ...(row.kindGroup === undefined ? {} : { group: row.kindGroup, version: row.kindVersion ?? '' }),
    kind: row.kind,
    verbs: row.verbs,
  };
}

/** Aggregated discovery (KEP-3352). @param groups for `/api`, the core group; for `/apis`, all others. */
export function aggregatedDiscovery(groups: readonly DiscoveredGroup[]): unknown {
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: 'apidiscovery.k8s.io/v2',
    metadata: {},
    items: groups.map((group) => ({
      metadata: group.name === '' ? {} : { name: group.name },
      versions: [...group.versions].map(([name, resources]) => ({
        version: name,
        resources: resources.map(aggregatedResource),
        freshness: group.stale.has(name) ? 'Stale' : 'Current',
      })),
    })),
  };
}

function aggregatedResource(resource: DiscoveredResource): unknown {
  const { group, version, kind } = resource;
  return {
    resource: resource.plural,
    responseKind: { group, version, kind },
    scope: resource.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: resource.singular,
    verbs: resource.verbs,
    ...(resource.shortNames.length === 0 ? {} : { shortNames: resource.shortNames }),
    ...(resource.categories.length === 0 ? {} : { categories: resource.categories }),
    ...(resource.subresources.length === 0
      ? {}
      : {
          subresources: resource.subresources.map((row) => ({
            subresource: row.name,
            responseKind: {
              group: row.kindGroup ?? group,
              version: row.kindVersion ?? version,
              kind: row.kind,
            },
            verbs: row.verbs,
          })),
        }),
  };
}
