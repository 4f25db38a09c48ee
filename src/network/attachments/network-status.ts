/** The interfaces of a Pod, in its annotation (the specification of Multi-Network, 4.1.3). */
import { isRecord, isStringList } from '../../objects/json.ts';
import type { Pod } from '../../objects/types/core.generated.ts';

/** The annotation of a Pod with its interfaces. */
export const networkStatusAnnotation = 'k8s.v1.cni.cncf.io/network-status';

/** One interface of a Pod, in the order of Go's fields. */
export interface NetworkStatus {
  /** `namespace/name` of the NetworkAttachmentDefinition; of the cluster's own network its name alone. */
  readonly name: string;
  readonly interface?: string;
  /** Without prefix lengths. */
  readonly ips?: readonly string[];
  readonly mac?: string;
  readonly mtu?: number;
  /** The cluster's own network, which comes first. */
  readonly default?: boolean;
  readonly dns: NetworkDNS;
  /** Of default routes. */
  readonly gateway?: readonly string[];
}

/** The resolver settings of a network. */
export interface NetworkDNS {
  readonly nameservers?: readonly string[];
  readonly domain?: string;
  readonly search?: readonly string[];
  readonly options?: readonly string[];
}

/** The annotation's text, as multus writes it: elements with an indentation of four, joined by commas. */
export function formatNetworkStatus(statuses: readonly NetworkStatus[]): string {
  const elements = statuses.map(({ name, ...rest }) => {
    const { ips = [], gateway = [] } = rest;
    const element = {
      ...{ name, interface: rest.interface, ips: ips.length === 0 ? undefined : ips, mac: rest.mac },
      ...{ mtu: rest.mtu, default: rest.default === true ? true : undefined, dns: rest.dns },
      gateway: gateway.length === 0 ? undefined : gateway,
    };
    return JSON.stringify(element, undefined, 4);
  });
  return `[${elements.join(',')}]`;
}

/** Reads the annotation's text; undefined for what is no list of interfaces. Members of a wrong type are left out. */
export function parseNetworkStatus(text: string): readonly NetworkStatus[] | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!Array.isArray(value)) return undefined;
  const found: NetworkStatus[] = [];
  for (const element of value) {
    if (!isRecord(element) || typeof element['name'] !== 'string') return undefined;
    const { name, interface: interfaceName, ips, mac, mtu, default: isDefault, dns, gateway } = element;
    found.push({
      name,
      ...(typeof interfaceName === 'string' ? { interface: interfaceName } : {}),
      ...(isStringList(ips) ? { ips } : {}),
      ...(typeof mac === 'string' ? { mac } : {}),
      ...(typeof mtu === 'number' ? { mtu } : {}),
      ...(isDefault === true ? { default: true } : {}),
      dns: dnsOf(dns),
      ...(isStringList(gateway) ? { gateway } : {}),
    });
  }
  return found;
}

/** The interfaces that a Pod's annotation has; undefined where there is none that can be read. */
export function networkStatusOf({ metadata }: Pick<Pod, 'metadata'>): readonly NetworkStatus[] | undefined {
  const text = metadata.annotations?.[networkStatusAnnotation];
  return text === undefined ? undefined : parseNetworkStatus(text);
}

/**
 * True for a Pod whose annotation is its own: the cluster's network has the Pod's addresses in it. A copy of another Pod may
 * have brought that one's annotation.
 */
export function isAttached(pod: Pod): boolean {
  const own = networkStatusOf(pod)?.find((each) => each.default === true);
  if (own === undefined) return false;
  const addresses = new Set((pod.status.podIPs ?? []).map(({ ip }) => ip));
  const { ips = [] } = own;
  return ips.length === addresses.size && ips.every((ip) => addresses.has(ip));
}

function dnsOf(value: unknown): NetworkDNS {
  if (!isRecord(value)) return {};
  const { nameservers, domain, search, options } = value;
  return {
    ...(isStringList(nameservers) ? { nameservers } : {}),
    ...(typeof domain === 'string' ? { domain } : {}),
    ...(isStringList(search) ? { search } : {}),
    ...(isStringList(options) ? { options } : {}),
  };
}
