import { parseAddress, type IPFamily } from '../../../objects/address.ts';
import type { Service, ServiceSpec } from '../../../objects/types/core.generated.ts';
import { normalizeNewClusterIPs } from './refill.ts';
import { hasNoSelector, needsClusterIP, headlessIP } from './type-rules.ts';

/**
 * The form of a Service for readers (`pkg/registry/core/service/storage/storage.go` defaultOnReadService): one that
 * was stored long ago gets the plural and family fields that it lacks, and an ExternalName loses its
 * `internalTrafficPolicy`. Returns the object itself if nothing changes, which is the usual case.
 */
export function decorateService(service: Service, primary: IPFamily): Service {
  const { spec } = service;
  const hasPlural = (spec.clusterIPs?.length ?? 0) > 0 || (spec.clusterIP ?? '') === '';
  if (!needsClusterIP(spec)) {
    if (spec.internalTrafficPolicy === undefined && hasPlural) return service;
    const { internalTrafficPolicy: _, ...rest } = spec;
    // A change of type may have set another cluster IP than the Service had.
    normalizeNewClusterIPs(rest);
    return { ...service, spec: rest };
  }
  if (hasPlural && (spec.ipFamilies?.length ?? 0) > 0) return service;
  const decorated = { ...spec };
  normalizeNewClusterIPs(decorated);
  addFamilies(decorated, primary);
  return { ...service, spec: decorated };
}

/**
 * True for the JSON of a Service with the plural and family fields, which no ExternalName has. Quotes within strings
 * are escaped, and no other member of a Service has these names.
 */
export function isDecoratedService(json: string): boolean {
  // Searched from the end, where the spec is.
  return json.lastIndexOf('"ipFamilies":["') !== -1 && json.lastIndexOf('"clusterIPs":["') !== -1;
}

function addFamilies(spec: ServiceSpec, primary: IPFamily): void {
  if ((spec.ipFamilies?.length ?? 0) > 0) return;
  if (spec.clusterIP !== headlessIP) {
    spec.ipFamilies = (spec.clusterIPs ?? []).map((address) => parseAddress(address)?.family ?? 'IPv4');
    if (spec.ipFamilies.length === 1) spec.ipFamilyPolicy = 'SingleStack';
    else if (spec.ipFamilies.length === 2) spec.ipFamilyPolicy = 'RequireDualStack';
  } else if (hasNoSelector(spec)) {
    spec.ipFamilies = [primary, otherFamily(primary)];
    spec.ipFamilyPolicy = 'RequireDualStack';
  } else {
    spec.ipFamilies = [primary];
    spec.ipFamilyPolicy = 'SingleStack';
  }
}

/** The other family. */
export function otherFamily(family: string): IPFamily {
  return family === 'IPv4' ? 'IPv6' : 'IPv4';
}
