import { methodNotAllowed, notFound } from '../../objects/status.ts';
import { genericStrategy } from '../../registry/generic/generic.ts';
import { nameIsPathSegment } from '../../objects/names.ts';
import type { ResourceDefinition } from '../../registry/generic/strategy.ts';
import { loadedVersion } from '../storage/multi-version.ts';
import { listOptions } from '../rest/options.ts';
import { responderTo } from '../rest/responder.ts';
import { listFilterOf } from '../rest/output.ts';
import type { ResourceHandler } from '../rest/handlers.ts';
import type { ServiceAccountTokens } from '../authentication/service-account-tokens.ts';
import type { Handler } from '../http/exchange.ts';
import type { SpecialHandlers } from '../rest/dispatch.ts';
import { reviewHandler, reviewKinds, type ReviewSources } from '../authorization/reviews.ts';
import { admitConnection } from './admit.ts';
import { evictionHandler, bindingHandler } from './pod-binding.ts';
import { scaleHandler } from './scale.ts';
import { tokenRequestHandler } from './token-request.ts';
import { type KubeletAccess, logHandler, withoutUpgrade } from './pod-streams.ts';
import {
  discovered,
  type DiscoveredResource,
  type DiscoveredResources,
  type SubresourceRow,
} from '../discovery/discovered-resource.ts';
import type { ServerCore } from '../rest/server-core.ts';

/** Resources of the core group without objects of their own: `bindings` and `componentstatuses`. */

/** Discovery rows of the virtual resources. */
export const virtualResources: readonly ResourceDefinition[] = [
  {
    group: '',
    version: 'v1',
    plural: 'bindings',
    singular: 'binding',
    kind: 'Binding',
    namespaced: true,
    shortNames: [],
    categories: [],
    verbs: ['create'],
    schema: 'io.k8s.api.core.v1.Binding',
    strategy: genericStrategy({ namespaced: true, nameRule: nameIsPathSegment }),
  },
  {
    group: '',
    version: 'v1',
    plural: 'componentstatuses',
    singular: 'componentstatus',
    kind: 'ComponentStatus',
    namespaced: false,
    shortNames: ['cs'],
    categories: [],
    verbs: ['get', 'list'],
    schema: 'io.k8s.api.core.v1.ComponentStatus',
    strategy: genericStrategy({ namespaced: false, nameRule: nameIsPathSegment }),
    deprecationWarning: 'v1 ComponentStatus is deprecated in v1.19+',
  },
];

/** Only the storage is checked: the scheduler and the controllers are clients (`core/componentstatus/rest.go`). */
const storageStatus = {
  kind: 'ComponentStatus',
  apiVersion: 'v1',
  metadata: { name: 'etcd-0' },
  conditions: [{ type: 'Healthy', status: 'True', message: 'ok' }],
};

/** Serves `componentstatuses`. */
const componentStatusHandler: ResourceHandler = async (core, resource, request, reply) => {
  const { name } = request.info;
  if (request.method !== 'GET') throw methodNotAllowed(['GET']);
  if (name === '') {
    const filter = listFilterOf(resource, listOptions(request.query, false));
    const item = loadedVersion(`/componentstatuses/${storageStatus.metadata.name}`, 0, storageStatusJson);
    const items = [item].filter(({ object }) => filter.matches(object));
    await responderTo(core, resource, request, reply, 'collection').list(items, {});
    return;
  }
  if (name !== storageStatus.metadata.name) throw notFound(resource.groupResource, name);
  await responderTo(core, resource, request, reply, 'object').object(200, storageStatus);
};

const storageStatusJson = Buffer.from(JSON.stringify(storageStatus));

/** What the special handlers need beyond the store. */
export interface SpecialSources {
  readonly reviews: ReviewSources;
  readonly serviceAccountTokens: ServiceAccountTokens;
  /** Serves `services/proxy`, `pods/proxy` and `nodes/proxy`. */
  readonly proxy: Handler;
  /** The connection to kubelets; undefined if Pods are objects only. */
  readonly kubelets: KubeletAccess | undefined;
}

/** The handlers of subresources that are no part of their object, and of reviews. */
export function specialHandlers(sources: SpecialSources): SpecialHandlers {
  const proxy: ResourceHandler = async (core, _resource, request, reply) => {
    await admitConnection(core, request, reply);
    await sources.proxy(request, reply);
  };
  const stream = withoutUpgrade(sources.kubelets);
  const handlers = new Map<string, ResourceHandler>([
    ['/services/proxy', proxy],
    ['/pods/proxy', proxy],
    ['/nodes/proxy', proxy],
    ['/pods/binding', bindingHandler],
    ['/bindings/', bindingHandler],
    ['/componentstatuses/', componentStatusHandler],
    ['/pods/eviction', evictionHandler],
    ['/pods/exec', stream],
    ['/pods/attach', stream],
    ['/pods/portforward', stream],
    ['/pods/log', logHandler(sources.kubelets)],
    ['/serviceaccounts/token', tokenRequestHandler(sources.serviceAccountTokens)],
    ['scale', scaleHandler],
    ['/replicationcontrollers/scale', scaleHandler],
    ['apps/deployments/scale', scaleHandler],
    ['apps/replicasets/scale', scaleHandler],
    ['apps/statefulsets/scale', scaleHandler],
  ]);
  for (const [name, { review }] of reviewKinds)
    handlers.set(`${name}/`, reviewHandler(review, sources.reviews));
  return handlers;
}

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
