import type { ResourceType } from '../../client/resources.ts';
import { isRecord } from '../../objects/json.ts';
import type { AddressPool } from './pool.ts';

export const addressPools: ResourceType<AddressPool> = {
  group: 'servicenet.dev',
  version: 'v1alpha1',
  plural: 'addresspools',
  kind: 'AddressPool',
  namespaced: false,
  definedBy: 'apply deploy/crds',
  // The CRD's schema guards the rest; what an older one let in is caught by readPool.
  isObject: (object): object is AddressPool => isRecord(Reflect.get(object, 'spec')),
};
