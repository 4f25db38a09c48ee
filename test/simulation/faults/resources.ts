import { isKubeObject } from '../../../src/objects/meta.ts';
import type { ResourceType } from '../../../src/client/resources.ts';

export const configMaps: ResourceType = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
  isObject: isKubeObject,
};
