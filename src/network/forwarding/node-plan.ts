import {
  type ParsedAddress,
  type ParsedCidr,
  type IPFamily,
  ipFamilies,
  addressBits,
  parseAddress,
  parseCidr,
} from '../../objects/address.ts';
import type { Labels } from '../../objects/selectors/label-selector.ts';
import type { NodeFamilyPlan, NodePlan, PodDetection, Problems } from './forwarding-plan.ts';
import { keyOf } from '../../objects/meta.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import { quotedStart } from '../../objects/formats/go-text.ts';

/** The node's part of a plan, and the addresses of a Service by family (`proxy/serviceport.go`, `util/utils.go`). Pure. */

/** The node that a plan is for. */
export interface ForwardingNode {
  readonly name: string;
  /** Of the Node object; only `topology.kubernetes.io/zone` is read. */
  readonly labels: Labels;
  /** The node's own address, one of each family: what `--nodeport-addresses=primary` means. */
  readonly primaryAddresses: readonly ParsedAddress[];
  /** The addresses of all interfaces. */
  readonly interfaceAddresses: readonly ParsedAddress[];
}

/** The forwarding options of the command line; the flags are kube-proxy's. */
export interface ForwardingOptions {
  /** The families that are served. */
  readonly families: readonly IPFamily[];
  /** `--masquerade-all`: masquerade what goes to cluster IPs, from wherever. */
  readonly masqueradeAll: boolean;
  /** `--nodeport-addresses`. With CIDRs of one family only, the other answers on all addresses, as kube-proxy has it. */
  readonly nodePortAddresses: 'primary' | readonly ParsedCidr[];
  /** The ranges of cluster IPs, of `--service-cidr` or ServiceCIDR objects. */
  readonly serviceCIDRs: readonly ParsedCidr[];
  /**
   * `--detect-local-mode`. `cidr` takes the CIDRs of `--cluster-cidr` or of the node; in a family without one, Pods
   * cannot be recognised. Undefined: in no family.
   */
  readonly podDetection:
    | { readonly by: 'cidr'; readonly cidrs: readonly ParsedCidr[] }
    | { readonly by: 'bridge'; readonly interface: string }
    | { readonly by: 'interfacePrefix'; readonly prefix: string }
    | undefined;
  /** The feature gate AllowServiceExternalIPs: without it, `spec.externalIPs` has no effect. */
  readonly allowExternalIPs: boolean;
}

const zoneLabel = 'topology.kubernetes.io/zone';

/** The plan for the node as a whole. */
export function planNode(node: ForwardingNode, options: ForwardingOptions): NodePlan {
  const zone = node.labels[zoneLabel];
  return {
    name: node.name,
    zone: zone === '' ? undefined : zone,
    families: ipFamilies
      .filter((family) => options.families.includes(family))
      .map((family) => planNodeFamily(family, node, options)),
  };
}

function planNodeFamily(family: IPFamily, node: ForwardingNode, options: ForwardingOptions): NodeFamilyPlan {
  return {
    family,
    primaryAddress: node.primaryAddresses.find((address) => address.family === family)?.canonical,
    nodePortAddresses: nodePortAddresses(family, node, options),
    nodeAddresses: texts(
      [...node.primaryAddresses, ...node.interfaceAddresses].filter(
        (address) => address.family === family && !isLoopback(address),
      ),
    ),
    serviceCIDRs: texts(options.serviceCIDRs.filter((cidr) => cidr.family === family)),
    podDetection: podDetection(family, options),
  };
}

/** `--nodeport-addresses` (`util/nodeport_addresses.go`): a family without a CIDR of its own, or with a /0, answers everywhere. */
function nodePortAddresses(
  family: IPFamily,
  node: ForwardingNode,
  options: ForwardingOptions,
): 'all' | readonly string[] {
  const reachable = (addresses: readonly ParsedAddress[]): readonly ParsedAddress[] =>
    addresses.filter((address) => address.family === family && !isLoopback(address));
  if (options.nodePortAddresses === 'primary') return texts(reachable(node.primaryAddresses));
  const cidrs = options.nodePortAddresses.filter((cidr) => cidr.family === family);
  if (cidrs.length === 0 || cidrs.some((cidr) => cidr.prefixLength === 0)) return 'all';
  return texts(
    reachable(node.interfaceAddresses).filter((address) => cidrs.some((cidr) => cidrContains(cidr, address))),
  );
}

function podDetection(family: IPFamily, options: ForwardingOptions): PodDetection | undefined {
  const { podDetection } = options;
  if (podDetection?.by !== 'cidr') return podDetection;
  const cidrs = texts(podDetection.cidrs.filter((cidr) => cidr.family === family));
  return cidrs.length === 0 ? undefined : { by: 'cidr', cidrs };
}

/** True when a CIDR holds an address of its family. */
export function cidrContains(cidr: ParsedCidr, address: Pick<ParsedAddress, 'family' | 'value'>): boolean {
  if (cidr.family !== address.family) return false;
  const hostBits = BigInt(addressBits(cidr.family) - cidr.prefixLength);
  return address.value >> hostBits === cidr.network >> hostBits;
}

/** True for 127.0.0.0/8 and ::1, where node ports never answer. */
export function isLoopback(address: ParsedAddress): boolean {
  return address.family === 'IPv4' ? address.value >> 24n === 127n : address.value === 1n;
}

function texts(parsed: readonly { readonly canonical: string }[]): readonly string[] {
  return [...new Set(parsed.map(({ canonical }) => canonical))].sort();
}

/** The addresses of one family. Canonical, sorted, each once. */
export interface ServiceAddresses {
  readonly clusterIP: string;
  /** Of load balancers that leave the address in the packets. */
  readonly loadBalancerIPs: readonly string[];
  /** Without those that are load balancer IPs too, which keep their source ranges. */
  readonly externalIPs: readonly string[];
  /** The clients that may connect to the load balancer IPs; no range contains another. Undefined: every client. */
  readonly sourceRanges: readonly string[] | undefined;
}

/** The texts of a Service that are addresses, read once for all families. */
export interface ParsedService {
  readonly clusterIPs: ReadonlyMap<IPFamily, string>;
  readonly loadBalancerIPs: readonly FamilyAddress[];
  readonly externalIPs: readonly FamilyAddress[];
  readonly sourceRanges: readonly ParsedCidr[];
  /** True when the Service names source ranges, readable or not. */
  readonly restrictsSources: boolean;
}

interface FamilyAddress {
  readonly family: IPFamily;
  readonly canonical: string;
}

/** Reads the addresses of a Service as leniently as kube-proxy does: leading zeros are decimal and go away. */
export function readAddresses(
  service: Service,
  options: ForwardingOptions,
  problems: Problems,
): ParsedService {
  const { spec, status } = service;
  const read = (field: string, texts: readonly string[]): FamilyAddress[] =>
    texts.flatMap((text) => {
      const parsed = parseAddress(text);
      if (parsed !== undefined) return [parsed];
      problems.add(
        'InvalidAddress',
        'Service',
        keyOf(service),
        `${field}: ${quotedStart(text)} is no address and is left out`,
      );
      return [];
    });
  const clusterIPs = new Map<IPFamily, string>();
  const named = (spec.clusterIPs ?? []).length > 0 ? spec.clusterIPs : [spec.clusterIP ?? ''];
  for (const { family, canonical } of read('spec.clusterIPs', named ?? [])) {
    if (!clusterIPs.has(family)) clusterIPs.set(family, canonical);
  }
  const ingress = (status.loadBalancer?.ingress ?? []).flatMap(({ ip, ipMode }) =>
    ip === undefined || ip === '' || (ipMode !== undefined && ipMode !== 'VIP') ? [] : [ip],
  );
  return {
    clusterIPs,
    loadBalancerIPs: read('status.loadBalancer.ingress', ingress),
    externalIPs: options.allowExternalIPs ? read('spec.externalIPs', spec.externalIPs ?? []) : [],
    sourceRanges: readRanges(service, problems),
    restrictsSources: (spec.loadBalancerSourceRanges ?? []).length > 0,
  };
}

function readRanges(service: Service, problems: Problems): ParsedCidr[] {
  return (service.spec.loadBalancerSourceRanges ?? []).flatMap((text) => {
    const parsed = parseCidr(text.trim());
    if (parsed !== undefined) return [parsed];
    const what = `spec.loadBalancerSourceRanges: ${quotedStart(text)} is no CIDR and is left out`;
    problems.add('InvalidAddress', 'Service', keyOf(service), what);
    return [];
  });
}

/** The part of one family; undefined when the Service has no cluster IP in it. */
export function addressesOfFamily(
  service: Service,
  parsed: ParsedService,
  { family, primaryAddress }: NodeFamilyPlan,
  problems: Problems,
): ServiceAddresses | undefined {
  const clusterIP = parsed.clusterIPs.get(family);
  if (clusterIP === undefined) return undefined;
  const loadBalancerIPs = ofFamily(parsed.loadBalancerIPs, family).filter((ip) => ip !== clusterIP);
  const ranges = parsed.sourceRanges.filter((range) => range.family === family);
  if (parsed.restrictsSources && ranges.length === 0 && loadBalancerIPs.length > 0) {
    const what = `spec.loadBalancerSourceRanges has no ${family} range: every ${family} source may connect`;
    problems.add('NoSourceRange', 'Service', keyOf(service), what);
  }
  return {
    clusterIP,
    loadBalancerIPs,
    externalIPs: ofFamily(parsed.externalIPs, family).filter(
      (ip) => ip !== clusterIP && !loadBalancerIPs.includes(ip),
    ),
    sourceRanges: sourceRanges(ranges, loadBalancerIPs, primaryAddress),
  };
}

/**
 * `loadBalancerSourceRanges`. Where the node itself may connect, the load balancer IPs may too: a node that holds such an address connects
 * to it from that address.
 */
function sourceRanges(
  ranges: readonly ParsedCidr[],
  loadBalancerIPs: readonly string[],
  nodeAddress: string | undefined,
): readonly string[] | undefined {
  if (ranges.length === 0 || loadBalancerIPs.length === 0) return undefined;
  if (ranges.some((range) => range.prefixLength === 0)) return undefined;
  const allowed = [...ranges];
  const node = nodeAddress === undefined ? undefined : parseAddress(nodeAddress);
  if (node !== undefined && ranges.some((range) => cidrContains(range, node))) {
    for (const ip of loadBalancerIPs) {
      const own = parseCidr(`${ip}/${addressBits(node.family)}`);
      if (own !== undefined) allowed.push(own);
    }
  }
  return widest(allowed);
}

/** Takes away ranges that another one contains. */
function widest(ranges: ParsedCidr[]): readonly string[] {
  ranges.sort((a, b) => a.prefixLength - b.prefixLength);
  const kept: ParsedCidr[] = [];
  for (const range of ranges) {
    const { family, network } = range;
    if (!kept.some((wider) => cidrContains(wider, { family, value: network }))) kept.push(range);
  }
  return kept.map((range) => range.canonical).sort();
}

function ofFamily(addresses: readonly FamilyAddress[], family: IPFamily): readonly string[] {
  const texts = addresses.flatMap((address) => (address.family === family ? [address.canonical] : []));
  return texts.length < 2 ? texts : [...new Set(texts)].sort();
}
