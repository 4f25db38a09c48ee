/** The addresses of a Service by family (`proxy/serviceport.go`, `util/utils.go`). Pure. */
import { addressBits, parseAddress, parseCidr, type ParsedCidr } from '../../objects/address.ts';
import { keyOf } from '../../objects/key.ts';
import type { IPFamily } from '../../objects/address.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import { cidrContains } from './node-plan.ts';
import type { NodeFamilyPlan } from './forwarding-plan.ts';
import type { ForwardingOptions } from './options.ts';
import type { Problems } from './problem.ts';
import { quotedStart } from '../../objects/go-text.ts';

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
