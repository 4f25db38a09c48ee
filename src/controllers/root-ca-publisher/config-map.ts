import type { ResourceType } from '../../client/resources.ts';
import { isStringMap } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';

/** The fields of core/v1 ConfigMap that are read here. */
export interface ConfigMap extends KubeObject {
  data?: Record<string, string>;
}

export const configMaps: ResourceType<ConfigMap> = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
  isObject: (object): object is ConfigMap => {
    const data: unknown = Reflect.get(object, 'data');
    return data === undefined || isStringMap(data);
  },
};
