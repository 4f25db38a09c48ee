/** Resources of the core group without objects of their own: `bindings` and `componentstatuses`. */
import { methodNotAllowed, notFound } from '../../objects/status-errors.ts';
import { genericStrategy } from '../../registry/generic/generic.ts';
import { nameIsPathSegment } from '../../objects/names.ts';
import type { ResourceDefinition } from '../../registry/generic/strategy.ts';
import { responderTo } from '../rest/responder.ts';
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

/** There is no scheduler, controller manager or etcd to report: the list is empty. */
export const componentStatusHandler: ResourceHandler = async (core, resource, request, reply) => {
  if (request.method !== 'GET') throw methodNotAllowed(['GET']);
  if (request.info.name !== '') throw notFound(resource.groupResource, request.info.name);
  await responderTo(core, resource, request, reply, 'collection').list([], {});
};
