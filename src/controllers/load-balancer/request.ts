import { parseStrictAddress, type IPFamily } from '../../objects/address.ts';
import { keyOf, type ObjectKey } from '../../objects/meta.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import { parseTime } from '../../objects/formats/time.ts';
import { splitList } from '../../objects/lists.ts';

/** The request of a Service, by its spec and annotations. */
export interface AddressRequest {
  readonly service: ObjectKey;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Labels of its namespace. */
  readonly namespaceLabels: Readonly<Record<string, string>>;
  /** Milliseconds since 1970. The oldest Service is served first. */
  readonly createdAtMs: number;
  /** In order of preference. */
  readonly families: readonly IPFamily[];
  /** All families or none; false: one family is better than none. */
  readonly needsAll: boolean;
  /** At most one per family, canonical. */
  readonly addresses: ReadonlyMap<IPFamily, string>;
  /** Names of requested pools, in order of preference; empty for any. */
  readonly pools: readonly string[];
  /** "" for none. */
  readonly sharingKey: string;
  /** Other namespaces that may share its addresses; `*` for all. */
  readonly sharingNamespaces: ReadonlySet<string>;
  /** `TCP/80`. */
  readonly ports: readonly string[];
  /** "" for externalTrafficPolicy Cluster, else the selector. Services share an address only if these are equal. */
  readonly backend: string;
  /** Why the request is invalid; empty if it is valid. */
  readonly problems: readonly string[];
}

/** Which Services are served, and how their annotations are read. */
export interface RequestSettings {
  /** The `loadBalancerClass` that is served. */
  readonly loadBalancerClass: string;
  /** Also serve Services without a class. */
  readonly isDefaultClass: boolean;
  /** Read the annotations of MetalLB, kube-vip, PureLB and Cilium. */
  readonly compat: boolean;
}

/** Annotations with the same meaning, by precedence. */
interface AnnotationNames {
  readonly addresses: readonly string[];
  readonly pool: readonly string[];
  readonly sharingKey: readonly string[];
  readonly sharingNamespaces: readonly string[];
}

const ownAnnotations: AnnotationNames = {
  addresses: ['servicenet.dev/addresses'],
  pool: ['servicenet.dev/pool'],
  sharingKey: ['servicenet.dev/sharing-key'],
  sharingNamespaces: ['servicenet.dev/sharing-namespaces'],
};

/** Also those of MetalLB (both prefixes), kube-vip, PureLB and Cilium (both prefixes), by their documentation. */
const compatAnnotations: AnnotationNames = {
  addresses: [
    ...ownAnnotations.addresses,
    'metallb.io/loadBalancerIPs',
    'metallb.universe.tf/loadBalancerIPs',
    'kube-vip.io/loadbalancerIPs',
    'purelb.io/addresses',
    'lbipam.cilium.io/ips',
    'io.cilium/lb-ipam-ips',
  ],
  pool: [
    ...ownAnnotations.pool,
    'metallb.io/address-pool',
    'metallb.universe.tf/address-pool',
    'purelb.io/service-group',
  ],
  sharingKey: [
    ...ownAnnotations.sharingKey,
    'metallb.io/allow-shared-ip',
    'metallb.universe.tf/allow-shared-ip',
    'purelb.io/allow-shared-ip',
    'lbipam.cilium.io/sharing-key',
    'io.cilium/lb-ipam-sharing-key',
  ],
  sharingNamespaces: [
    ...ownAnnotations.sharingNamespaces,
    'lbipam.cilium.io/sharing-cross-namespace',
    'io.cilium/lb-ipam-sharing-cross-namespace',
  ],
};

/** Both "" when no annotation is set. */
interface ReadAnnotation {
  readonly name: string;
  readonly value: string;
}

/** Oldest first, then by key: creation times have whole seconds. */
export function byServiceAge(a: AddressRequest, b: AddressRequest): number {
  return a.createdAtMs - b.createdAtMs || (a.service < b.service ? -1 : a.service > b.service ? 1 : 0);
}

/** True for Services of type LoadBalancer with a class that is served. The class cannot change while the type stays. */
export function isServed({ spec }: Service, settings: RequestSettings): boolean {
  if (spec.type !== 'LoadBalancer') return false;
  if (spec.loadBalancerClass === undefined || spec.loadBalancerClass === '') return settings.isDefaultClass;
  return spec.loadBalancerClass === settings.loadBalancerClass;
}

/** The `loadBalancerClass` that is served if the options name none. Its Services have no {@link classAnnotation}. */
export const defaultLoadBalancerClass = 'servicenet.dev/load-balancer';
/** Names the class of the instance that the finalizer and the conditions of a Service are from. */
export const classAnnotation = 'servicenet.dev/load-balancer-class';

/** The class of the instance that what is in the metadata and the status of a Service is from. */
function ownerOf({ metadata, spec }: Service): string {
  const { type, loadBalancerClass = '' } = spec;
  const ofSpec = type === 'LoadBalancer' && loadBalancerClass !== '' ? loadBalancerClass : undefined;
  return metadata.annotations?.[classAnnotation] ?? ofSpec ?? defaultLoadBalancerClass;
}

/** True for a Service that an instance with another class serves, or has served: it is never written. */
export function isOfOtherClass(service: Service, settings: RequestSettings): boolean {
  return !isServed(service, settings) && ownerOf(service) !== settings.loadBalancerClass;
}

/**
 * The {@link classAnnotation} that a served Service gets; undefined where it has the right one. On one without a class
 * the first instance's stays: several may serve those.
 */
export function wantedMark({ metadata, spec }: Service, settings: RequestSettings): string | undefined {
  const { loadBalancerClass: own } = settings;
  const mark = metadata.annotations?.[classAnnotation];
  if (mark === own || (mark === undefined && own === defaultLoadBalancerClass)) return undefined;
  return mark === undefined || spec.loadBalancerClass === own ? own : undefined;
}

/** Reads the request of a Service. `namespaceLabels` are the labels of its namespace. */
export function readRequest(
  service: Service,
  namespaceLabels: Readonly<Record<string, string>>,
  settings: RequestSettings,
): AddressRequest {
  const { metadata, spec } = service;
  const names = settings.compat ? compatAnnotations : ownAnnotations;
  const problems: string[] = [];
  const families = familiesOf(service);
  const read = (list: readonly string[]): ReadAnnotation =>
    firstAnnotation(metadata.annotations, list, problems);
  return {
    service: keyOf(service),
    namespace: metadata.namespace ?? '',
    labels: metadata.labels ?? {},
    namespaceLabels,
    createdAtMs: parseTime(metadata.creationTimestamp ?? '') ?? 0,
    families,
    needsAll: spec.ipFamilyPolicy !== 'PreferDualStack',
    addresses: readAddresses(read(names.addresses), spec.loadBalancerIP ?? '', families, problems),
    pools: splitList(read(names.pool).value),
    sharingKey: read(names.sharingKey).value,
    sharingNamespaces: new Set(splitList(read(names.sharingNamespaces).value)),
    ports: (spec.ports ?? []).map(({ port, protocol }) => `${protocol ?? 'TCP'}/${port}`),
    backend: spec.externalTrafficPolicy === 'Local' ? selectorText(spec.selector ?? {}) : '',
    problems,
  };
}

/** `spec.ipFamilies`, which the API server sets; IPv4 if it did not. */
function familiesOf({ spec }: Service): IPFamily[] {
  const families = (spec.ipFamilies ?? []).filter((family) => family === 'IPv4' || family === 'IPv6');
  return families.length === 0 ? ['IPv4'] : [...new Set(families)];
}

/** The annotation has precedence over `spec.loadBalancerIP`, which holds one address only. */
function readAddresses(
  annotation: ReadAnnotation,
  loadBalancerIP: string,
  families: readonly IPFamily[],
  problems: string[],
): Map<IPFamily, string> {
  const addresses = new Map<IPFamily, string>();
  const { name: source, value } =
    annotation.value === '' ? { name: 'spec.loadBalancerIP', value: loadBalancerIP } : annotation;
  const texts = new Set(splitList(value));
  const problem = (text: string): number => problems.push(`requests ${text} in ${source}`);
  if (texts.size > maxAddresses) {
    problem(`${texts.size} addresses (at most one per family)`);
    return addresses;
  }
  for (const text of texts) {
    const parsed = parseStrictAddress(text);
    if (parsed === undefined) problem(`${JSON.stringify(text.slice(0, 60))} (not an IP address)`);
    else if (text === '0.0.0.0' || text === '::') problem(`${text} (DHCP is not supported)`);
    else if (!families.includes(parsed.family)) {
      problem(`${parsed.canonical} (but it is not an ${parsed.family} Service)`);
    } else if (addresses.has(parsed.family) && addresses.get(parsed.family) !== parsed.canonical) {
      problem(`two ${parsed.family} addresses (at most one per family)`);
    } else addresses.set(parsed.family, parsed.canonical);
  }
  return addresses;
}

/** Longer lists are not parsed. */
const maxAddresses = 8;

function selectorText(selector: Readonly<Record<string, string>>): string {
  const pairs = Object.keys(selector).sort();
  return `Local:${pairs.map((key) => `${key}=${selector[key] ?? ''}`).join(',')}`;
}

/** The first annotation that is set. Another one with a different value is a problem. */
function firstAnnotation(
  annotations: Readonly<Record<string, string>> | undefined,
  names: readonly string[],
  problems: string[],
): ReadAnnotation {
  const set = names.filter((name) => annotations !== undefined && Object.hasOwn(annotations, name));
  const [first] = set;
  if (first === undefined || annotations === undefined) return { name: '', value: '' };
  const value = (annotations[first] ?? '').trim();
  const other = set.find((name) => (annotations[name] ?? '').trim() !== value);
  // Our annotation overrules the ones that an earlier load balancer left. Between two of those there is no precedence.
  if (other !== undefined && !first.startsWith('servicenet.dev/')) {
    problems.push(`has annotations ${first} and ${other}, which contradict each other`);
  }
  return { name: first, value };
}
