import type { ResourceDefinition } from '../../registry/generic/strategy.ts';
import {
  discovered,
  type DiscoveredResource,
  type DiscoveredResources,
  type SubresourceRow,
} from '../discovery/discovered-resource.ts';
import type { ServerCore } from '../rest/server-core.ts';

const create = ['create'];
const stream = ['create', 'get'];
const all = ['create', 'delete', 'get', 'patch', 'update'];
const scale: SubresourceRow = {
  name: 'scale',
  kind: 'Scale',
  verbs: ['get', 'patch', 'update'],
  kindGroup: 'autoscaling',
  kindVersion: 'v1',
};

/** Subresources without a strategy, by `<group>/<plural>`. */
const rows: ReadonlyMap<string, readonly SubresourceRow[]> = new Map<string, readonly SubresourceRow[]>([
  ['/nodes', [{ name: 'proxy', kind: 'NodeProxyOptions', verbs: all }]],
  [
    '/pods',
    [
      { name: 'attach', kind: 'PodAttachOptions', verbs: stream },
      { name: 'binding', kind: 'Binding', verbs: create },
      { name: 'eviction', kind: 'Eviction', verbs: create, kindGroup: 'policy', kindVersion: 'v1' },
      { name: 'exec', kind: 'PodExecOptions', verbs: stream },
      { name: 'log', kind: 'Pod', verbs: ['get'] },
      { name: 'portforward', kind: 'PodPortForwardOptions', verbs: stream },
      { name: 'proxy', kind: 'PodProxyOptions', verbs: all },
    ],
  ],
  ['/services', [{ name: 'proxy', kind: 'ServiceProxyOptions', verbs: all }]],
  [
    '/serviceaccounts',
    [
      {
        name: 'token',
        kind: 'TokenRequest',
        verbs: create,
        kindGroup: 'authentication.k8s.io',
        kindVersion: 'v1',
      },
    ],
  ],
  ['/replicationcontrollers', [scale]],
  ['apps/deployments', [scale]],
  ['apps/replicasets', [scale]],
  ['apps/statefulsets', [scale]],
]);

function rowsOf({ group, plural, scale: custom }: ResourceDefinition): readonly SubresourceRow[] {
  return custom === undefined ? (rows.get(`${group}/${plural}`) ?? []) : [scale];
}

/** Whether a resource has a subresource of this name; it itself is "". */
export function hasSubresource(definition: ResourceDefinition, name: string): boolean {
  const { strategy } = definition;
  if (name === '' || strategy.subresources?.has(name) === true) return true;
  if (name === 'status') return strategy.status !== undefined;
  return rowsOf(definition).some((row) => row.name === name);
}

/** The served resources with their subresource rows, as discovery and OpenAPI show them. */
export function servedForDiscovery(core: ServerCore): DiscoveredResources {
  let version = -1;
  let served: readonly DiscoveredResource[] = [];
  return () => {
    if (version !== core.resources.version) {
      version = core.resources.version;
      served = core.resources
        .all()
        .map(({ definition, custom }) => discovered(definition, rowsOf(definition), custom));
    }
    return served;
  };
}
