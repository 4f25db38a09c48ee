import type { EndpointSlice } from '../../objects/types/discovery.generated.ts';
import { joinKey, type ObjectKey } from '../../objects/key.ts';
import type { KubeObject } from '../../objects/meta.ts';

const serviceNameLabel = 'kubernetes.io/service-name';
const proxyNameLabel = 'service.kubernetes.io/service-proxy-name';
export const headlessLabel = 'service.kubernetes.io/headless';

/** True for Services and slices of another proxy: they have the label, with any value. */
export function isOfOtherProxy(object: KubeObject): boolean {
  return hasLabel(object, proxyNameLabel);
}

/** The Service that a slice belongs to; undefined for slices that the proxy ignores and for those of no Service. */
export function serviceOfSlice(slice: EndpointSlice): ObjectKey | undefined {
  if (isOfOtherProxy(slice) || hasLabel(slice, headlessLabel)) return undefined;
  const name = slice.metadata.labels?.[serviceNameLabel];
  if (name === undefined || name === '') return undefined;
  return joinKey(slice.metadata.namespace ?? '', name);
}

/** The index of slices by {@link indexBySliceService}. */
export const bySliceService = 'slice-service';

/** Files a slice under its Service ({@link serviceOfSlice}). */
export function indexBySliceService(slice: EndpointSlice): readonly ObjectKey[] {
  const key = serviceOfSlice(slice);
  return key === undefined ? [] : [key];
}

function hasLabel(object: KubeObject, label: string): boolean {
  const { labels } = object.metadata;
  return labels !== undefined && Object.hasOwn(labels, label);
}
