import { parseStrictAddress } from '../../objects/address.ts';
import { keyOf, type ObjectKey } from '../../objects/key.ts';
import type { IPFamily } from '../../objects/address.ts';
import type { Service } from '../../objects/core.generated.ts';
import { parseTime } from '../../objects/time.ts';
import { annotationNames, firstAnnotation, type ReadAnnotation } from './annotations.ts';

/** What a Service asks of the load balancer: its spec and annotations, read once. */
export interface AddressRequest {
  readonly service: ObjectKey;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Labels of its namespace. */
  readonly namespaceLabels: Readonly<Record<string, string>>;
  /** Milliseconds since 1970: who came first is served first. */
  readonly createdAt: number;
  /** In order of preference. */
  readonly families: readonly IPFamily[];
  /** All families or none; else one is better than none. */
  readonly needsAll: boolean;
  /** At most one per family, canonical. */
  readonly addresses: ReadonlyMap<IPFamily, string>;
  /** Pools to take addresses from, in this order; empty for any. */
  readonly pools: readonly string[];
  /** "" for none. */
  readonly sharingKey: string;
  /** Other namespaces with which addresses may be shared; `*` for all. */
  readonly sharingNamespaces: ReadonlySet<string>;
  /** `TCP/80`. */
  readonly ports: readonly string[];
  /** "" for externalTrafficPolicy Cluster, else the selector: only equal ones may share. */
  readonly backend: string;
  /** Why the request cannot be served as it is; empty for a good one. */
  readonly problems: readonly string[];
}

/** Which Services are ours, and how they are read. */
export interface RequestSettings {
  /** The `loadBalancerClass` that we serve. */
  readonly loadBalancerClass: string;
  /** Serve Services without a class too. */
  readonly isDefaultClass: boolean;
  /** Read the annotations of MetalLB, kube-vip, PureLB and Cilium. */
  readonly compat: boolean;
}

/** Oldest first; by key among those of one second. */
export function byAge(a: AddressRequest, b: AddressRequest): number {
  return a.createdAt - b.createdAt || (a.service < b.service ? -1 : a.service > b.service ? 1 : 0);
}

/** True for Services of type LoadBalancer that we serve; the class cannot change while the type stays. */
export function isServed({ spec }: Service, settings: RequestSettings): boolean {
  if (spec.type !== 'LoadBalancer') return false;
  if (spec.loadBalancerClass === undefined || spec.loadBalancerClass === '') return settings.isDefaultClass;
  return spec.loadBalancerClass === settings.loadBalancerClass;
}

/** Reads what a Service asks for. `namespaceLabels` are those of its namespace. */
export function readRequest(
  service: Service,
  namespaceLabels: Readonly<Record<string, string>>,
  settings: RequestSettings,
): AddressRequest {
  const { metadata, spec } = service;
  const names = annotationNames(settings.compat);
  const problems: string[] = [];
  const families = familiesOf(service);
  const read = (list: readonly string[]): ReadAnnotation =>
    firstAnnotation(metadata.annotations, list, problems);
  return {
    service: keyOf(service),
    namespace: metadata.namespace ?? '',
    labels: metadata.labels ?? {},
    namespaceLabels,
    createdAt: parseTime(metadata.creationTimestamp ?? '') ?? 0,
    families,
    needsAll: spec.ipFamilyPolicy !== 'PreferDualStack',
    addresses: readAddresses(read(names.addresses), spec.loadBalancerIP ?? '', families, problems),
    pools: items(read(names.pool).value),
    sharingKey: read(names.sharingKey).value,
    sharingNamespaces: new Set(items(read(names.sharingNamespaces).value)),
    ports: (spec.ports ?? []).map(({ port, protocol }) => `${protocol ?? 'TCP'}/${port}`),
    backend: spec.externalTrafficPolicy === 'Local' ? selectorText(spec.selector ?? {}) : '',
    problems,
  };
}

/** The families of the Service as the API server resolved them; IPv4 where it did not. */
function familiesOf({ spec }: Service): IPFamily[] {
  const families = (spec.ipFamilies ?? []).filter((family) => family === 'IPv4' || family === 'IPv6');
  return families.length === 0 ? ['IPv4'] : [...new Set(families)];
}

/** The annotation wins over `spec.loadBalancerIP`, which holds one address only. */
function readAddresses(
  annotation: ReadAnnotation,
  loadBalancerIP: string,
  families: readonly IPFamily[],
  problems: string[],
): Map<IPFamily, string> {
  const addresses = new Map<IPFamily, string>();
  const { name: source, value } =
    annotation.value === '' ? { name: 'spec.loadBalancerIP', value: loadBalancerIP } : annotation;
  const texts = new Set(items(value));
  const problem = (text: string): number => problems.push(`requests ${text} in ${source}`);
  if (texts.size > MAX_ADDRESSES) {
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

const MAX_ADDRESSES = 8;

function items(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

function selectorText(selector: Readonly<Record<string, string>>): string {
  const pairs = Object.keys(selector).sort();
  return `Local:${pairs.map((key) => `${key}=${selector[key] ?? ''}`).join(',')}`;
}
