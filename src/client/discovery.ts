import type { ResourceType } from './resources.ts';
import type { Transport } from './transport.ts';
import { isRecord, isStringList } from '../objects/json.ts';
import type { KubeObject } from '../objects/meta.ts';
import { errorMessage } from '../objects/error-message.ts';

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
 * Reads what a server serves: every resource once, subresources left out.
 *
 * @throws what {@link Transport.request} throws, when not even the list of groups can be read.
 */
export async function discover(transport: Transport, signal: AbortSignal): Promise<Discovery> {
  const [core, groups] = await Promise.all([
    transport.request('GET', '/api', { signal }),
    transport.request('GET', '/apis', { signal }),
  ]);
  const versions = [
    ...coreVersions(core.json()).map((version) => ({ group: '', version, path: `/api/${version}` })),
    ...groupVersions(groups.json()).map(({ group, version }) => ({
      group,
      version,
      path: `/apis/${group}/${version}`,
    })),
  ];
  const failures: DiscoveryFailure[] = [];
  const lists = await Promise.all(
    versions.map(async ({ group, version, path }) => {
      try {
        const list = (await transport.request('GET', path, { signal })).json();
        return readResources(list, group, version);
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

function coreVersions(value: unknown): string[] {
  return isRecord(value) && isStringList(value['versions']) ? value['versions'] : [];
}

function groupVersions(value: unknown): { group: string; version: string }[] {
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
    if (row['name'].includes('/')) return [];
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
