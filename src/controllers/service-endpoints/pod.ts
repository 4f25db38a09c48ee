/**
 * The fields of a Pod that the endpoints controllers read (k8s.io/endpointslice/util, `controller_utils.go`). All
 * functions are pure and accept missing fields, which a broken server may send.
 */
import { isIPv4 } from 'node:net';
import { type IPFamily, parseAddress } from '../../objects/address.ts';
import { isStringMap } from '../../objects/json.ts';
import type { ObjectReference, Pod, Service } from '../../objects/types/core.generated.ts';

/** True when a Pod may back a Service: not finished, and it has an address. */
export function mayBackService(pod: Pod): boolean {
  const { phase, podIP, podIPs } = pod.status;
  if (phase === 'Succeeded' || phase === 'Failed') return false;
  return (podIP !== undefined && podIP !== '') || (podIPs !== undefined && podIPs.length > 0);
}

/** The host name to publish: only with a subdomain that is the Service's name. */
export function publishedHostname(pod: Pod, service: Service): string | undefined {
  const { hostname, subdomain } = pod.spec;
  return hostname !== undefined && hostname !== '' && subdomain === service.metadata.name
    ? hostname
    : undefined;
}

/** The reference to a Pod in an endpoint. */
export function podReference(pod: Pod): ObjectReference {
  const { namespace, name, uid } = pod.metadata;
  return {
    kind: 'Pod',
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
    ...(uid === undefined ? {} : { uid }),
  };
}

/** The selector of a Service whose endpoints a controller writes; undefined for all others. */
export function managedSelector(service: Service): Readonly<Record<string, string>> | undefined {
  const { type } = service.spec;
  return type === 'ExternalName' ? undefined : selectorOf(service);
}

/** The selector of a Service; undefined when it has none, or an invalid one. */
export function selectorOf(service: Service): Readonly<Record<string, string>> | undefined {
  const selector: unknown = service.spec.selector;
  return isStringMap(selector) && Object.keys(selector).length > 0 ? selector : undefined;
}

/** An address as text in canonical form, and its family. */
export interface CanonicalIP {
  ip: string;
  family: IPFamily;
}

/**
 * Reads an address as Go's `ParseIPSloppy` does and returns it as `net.IP.String` prints it: decimal fields with
 * leading zeros are read, IPv6 is compressed, IPv4-mapped IPv6 is IPv4. Undefined for other texts.
 */
export function canonicalIP(text: string): CanonicalIP | undefined {
  // A fast path without big integers, for nearly all Pods.
  if (isIPv4(text)) return { ip: text, family: 'IPv4' };
  const parsed = parseAddress(text);
  return parsed === undefined ? undefined : { ip: parsed.canonical, family: parsed.family };
}
