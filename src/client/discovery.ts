import type { ResourceType } from './resources.ts';
import type { Transport } from './transport.ts';
import { isRecord, isStringList, listAt, textAt } from '../objects/json.ts';
import type { KubeObject } from '../objects/meta.ts';
import { errorMessage } from '../objects/status.ts';

/** A resource from discovery, in the version that the server prefers. */
export interface DiscoveredType extends ResourceType {
  readonly verbs: readonly string[];
  /** All versions in which it is served. */
  readonly versions: readonly string[];
}

/** The resources that a server serves. */
export interface Discovery {
  readonly resources: readonly DiscoveredType[];
  /** Group versions that could not be read. Their resources are missing above. */
  readonly failures: readonly DiscoveryFailure[];
}

/** A group version that could not be read. */
export interface DiscoveryFailure {
  readonly group: string;
  readonly version: string;
  readonly error: unknown;
}

/** Names the group version that could not be read, and the reason. */
export function describeDiscoveryFailure({ group, version, error }: DiscoveryFailure): string {
  const why = errorMessage(error);
  return `${group === '' ? version : `${group}/${version}`}: ${why}`;
}

/**
 * All resources of all groups in one document (Kubernetes 1.30 and newer, KEP-3352); where a server has none, its groups.
 */
const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json';

/** A group version. `resources`: if the document of the groups has them. */
interface GroupVersion {
  readonly group: string;
  readonly version: string;
  readonly resources?: readonly DiscoveredType[];
  readonly isStale?: boolean;
}

/**
 * Reads what a server serves: every resource once, subresources left out.
 *
 * @throws what {@link Transport.request} throws, when not even the list of groups can be read.
 */
export async function discover(transport: Transport, signal: AbortSignal): Promise<Discovery> {
  const [core, groups] = await Promise.all([
    transport.request('GET', '/api', { signal, headers: { accept } }),
    transport.request('GET', '/apis', { signal, headers: { accept } }),
  ]);
  const versions = [core.json(), groups.json()].flatMap(
    (document) => aggregatedVersions(document) ?? [...coreVersions(document), ...groupVersions(document)],
  );
  const failures: DiscoveryFailure[] = [];
  const lists = await Promise.all(
    versions.map(async ({ group, version, resources, isStale }) => {
      try {
        // What an extension API server that does not answer has served before (client-go `discovery/aggregated_discovery.go`).
        if (isStale === true) throw new Error(`stale GroupVersion discovery: ${group}/${version}`);
        if (resources !== undefined) return resources;
        const path = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
        return readResources((await transport.request('GET', path, { signal })).json(), group, version);
      } catch (error) {
        failures.push({ group, version, error });
        return [];
      }
    }),
  );
  // Versions are in the server's order of preference: the first one with a resource counts.
  const resources = new Map<string, DiscoveredType>();
  for (const resource of lists.flat()) {
    const name = `${resource.plural}.${resource.group}`;
    const first = resources.get(name);
    resources.set(
      name,
      first === undefined ? resource : { ...first, versions: [...first.versions, resource.version] },
    );
  }
  return { resources: [...resources.values()], failures };
}

/** Undefined for another document. */
function aggregatedVersions(document: unknown): GroupVersion[] | undefined {
  if (textAt(document, 'kind') !== 'APIGroupDiscoveryList') return undefined;
  return listAt(document, 'items').flatMap((item) => {
    const group = textAt(item, 'metadata', 'name');
    return listAt(item, 'versions').map((entry) => {
      const version = textAt(entry, 'version');
      const rows = listAt(entry, 'resources').map((row) => ({
        name: textAt(row, 'resource'),
        kind: textAt(row, 'responseKind', 'kind'),
        namespaced: textAt(row, 'scope') === 'Namespaced',
        verbs: listAt(row, 'verbs'),
      }));
      const resources = readResources({ resources: rows }, group, version);
      return { group, version, resources, isStale: textAt(entry, 'freshness') === 'Stale' };
    });
  });
}

function coreVersions(value: unknown): GroupVersion[] {
  const versions = isRecord(value) && isStringList(value['versions']) ? value['versions'] : [];
  return versions.map((version) => ({ group: '', version }));
}

function groupVersions(value: unknown): GroupVersion[] {
  const groups: unknown[] = isRecord(value) && Array.isArray(value['groups']) ? value['groups'] : [];
  return groups.flatMap((entry) => {
    if (!isRecord(entry) || typeof entry['name'] !== 'string' || !Array.isArray(entry['versions'])) return [];
    const group = entry['name'];
    const preferred: unknown = isRecord(entry['preferredVersion'])
      ? entry['preferredVersion']['version']
      : '';
    const versions: unknown[] = entry['versions'];
    return versions
      .flatMap((each) => (isRecord(each) && typeof each['version'] === 'string' ? [each['version']] : []))
      .sort((a, b) => Number(b === preferred) - Number(a === preferred))
      .map((version) => ({ group, version }));
  });
}

function readResources(value: unknown, group: string, version: string): DiscoveredType[] {
  const rows: unknown[] = isRecord(value) && Array.isArray(value['resources']) ? value['resources'] : [];
  return rows.flatMap((row) => {
    if (!isRecord(row) || typeof row['name'] !== 'string' || typeof row['kind'] !== 'string') return [];
    // A resource that only its subresources are served of has no kind.
    if (row['name'].includes('/') || row['kind'] === '') return [];
    return [
      {
        group,
        version,
        plural: row['name'],
        kind: row['kind'],
        namespaced: row['namespaced'] === true,
        verbs: isStringList(row['verbs']) ? row['verbs'] : [],
        versions: [version],
        isObject: (_object: KubeObject): _object is KubeObject => true,
      },
    ];
  });
}

interface Mapping {
  readonly plural: string;
  readonly namespaced: boolean;
}

/** Finds the path of any object by discovery, as kubectl does. Each group version is requested once. */
export class RestMapping {
  readonly #transport: Transport;
  readonly #kinds = new Map<string, ReadonlyMap<string, Mapping>>();

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * The path of an object; a namespaced one without a namespace is in `default`.
   * @throws {Error} for a kind that the server does not serve.
   */
  async pathOf(object: KubeObject): Promise<string> {
    const { apiVersion = '', kind = '', metadata } = object;
    const mapping = (await this.#kindsOf(apiVersion)).get(kind);
    if (mapping === undefined) throw new Error(`the server does not serve ${kind} of ${apiVersion}`);
    const scope = mapping.namespaced
      ? `/namespaces/${encodeURIComponent(metadata.namespace ?? 'default')}`
      : '';
    return `${root(apiVersion)}${scope}/${mapping.plural}/${encodeURIComponent(metadata.name ?? '')}`;
  }

  async #kindsOf(apiVersion: string): Promise<ReadonlyMap<string, Mapping>> {
    const known = this.#kinds.get(apiVersion);
    if (known !== undefined) return known;
    const list = (await this.#transport.request('GET', root(apiVersion))).json();
    const kinds = new Map<string, Mapping>();
    const rows: unknown[] = isRecord(list) && Array.isArray(list['resources']) ? list['resources'] : [];
    for (const row of rows) {
      if (!isRecord(row) || typeof row['kind'] !== 'string' || typeof row['name'] !== 'string') continue;
      if (row['name'].includes('/')) continue;
      kinds.set(row['kind'], { plural: row['name'], namespaced: row['namespaced'] === true });
    }
    this.#kinds.set(apiVersion, kinds);
    return kinds;
  }
}

function root(apiVersion: string): string {
  return apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
}
