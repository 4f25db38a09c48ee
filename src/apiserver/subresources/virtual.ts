/** Resources of the core group without objects of their own: `bindings` and `componentstatuses`. */
import { methodNotAllowed, notFound } from '../../objects/status-errors.ts';
import { genericStrategy } from '../../registry/generic/generic.ts';
import { nameIsPathSegment } from '../../objects/names.ts';
import type { ResourceDefinition } from '../../registry/generic/strategy.ts';
import { loadedVersion } from '../storage/version.ts';
import { listOptions } from '../rest/options/list-options.ts';
import { responderTo } from '../rest/responder.ts';
import { selectionOf } from '../rest/selection.ts';
import type { ResourceHandler } from '../rest/handlers.ts';

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
export const componentStatusHandler: ResourceHandler = async (core, resource, request, reply) => {
  const { name } = request.info;
  if (request.method !== 'GET') throw methodNotAllowed(['GET']);
  if (name === '') {
    const selection = selectionOf(resource, listOptions(request.query, false));
    const item = loadedVersion(`/componentstatuses/${storageStatus.metadata.name}`, 0, storageStatusJson);
    const items = [item].filter(({ object }) => selection.matches(object));
    await responderTo(core, resource, request, reply, 'collection').list(items, {});
    return;
  }
  if (name !== storageStatus.metadata.name) throw notFound(resource.groupResource, name);
  await responderTo(core, resource, request, reply, 'object').object(200, storageStatus);
};

const storageStatusJson = Buffer.from(JSON.stringify(storageStatus));
