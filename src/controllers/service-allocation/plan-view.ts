import type { AllocationReason } from '../../objects/reasons.ts';
import { parseAddress, type IPFamily } from '../../objects/address.ts';
import { type ObjectKey, keyOf } from '../../objects/meta.ts';
import { at, listAt, numberAt, textAt } from '../../objects/json.ts';
import type { Service } from '../../objects/types/core.generated.ts';

/** The members of a Service that allocation needs. All are checked: a faulty server may send any type. Pure. */

/**
 * Claims values before they are written to the spec: addresses, then node ports, separated by commas (see plan.ts).
 */
export const claimAnnotation = 'servicenet.dev/allocation-claim';

/** An address (canonical text) or a node port (decimal digits). */
export type AllocatedValue = string;

export interface PortView {
  readonly port: number;
  /** 0 for none. */
  readonly nodePort: number;
}

export interface ServiceView {
  readonly key: ObjectKey;
  readonly type: string;
  /** As they are written, without `None`. */
  readonly clusterIPs: readonly string[];
  readonly headless: boolean;
  readonly hasSelector: boolean;
  readonly policy: string;
  readonly families: readonly string[];
  readonly ports: readonly PortView[];
  /** Port number -> node port. Numbers without a node port are not in the map. */
  readonly nodePortOf: ReadonlyMap<number, number>;
  /** Whether ports without a node port get one. */
  readonly wantsNodePorts: boolean;
  /** Whether the type of the Service has node ports. */
  readonly mayHaveNodePorts: boolean;
  readonly wantsHealthCheck: boolean;
  /** 0 for none. */
  readonly healthCheckNodePort: number;
  /** The value of the annotation; undefined for none. */
  readonly claim: string | undefined;
  /** Orders Services by age: the older one keeps a value that two have. */
  readonly age: string;
}

/** Reads a Service. Members of a wrong type count as absent. */
export function viewOf(service: Service): ServiceView {
  const { metadata, spec } = service;
  const type = textAt(spec, 'type') === '' ? 'ClusterIP' : textAt(spec, 'type');
  const single = textAt(spec, 'clusterIP');
  const plural = listAt(spec, 'clusterIPs').filter((item) => typeof item === 'string' && item !== '');
  const written: string[] = plural.length > 0 ? plural.map(String) : single === '' ? [] : [single];
  const exposed = type === 'NodePort' || type === 'LoadBalancer';
  const selector = at(spec, 'selector');
  const ports = listAt(spec, 'ports').map((port) => ({
    port: numberAt(port, 'port'),
    nodePort: portNumber(numberAt(port, 'nodePort')),
  }));
  const claim = at(metadata, 'annotations', claimAnnotation);
  return {
    key: keyOf(service),
    type,
    clusterIPs: written.filter((text) => text !== 'None'),
    headless: written.includes('None'),
    hasSelector: typeof selector === 'object' && selector !== null && Object.keys(selector).length > 0,
    policy: textAt(spec, 'ipFamilyPolicy'),
    families: listAt(spec, 'ipFamilies').filter((item) => typeof item === 'string'),
    ports,
    // Reversed, so that the first port of a number counts.
    nodePortOf: new Map(
      ports.toReversed().flatMap(({ port, nodePort }) => (nodePort > 0 ? [[port, nodePort] as const] : [])),
    ),
    wantsNodePorts:
      type === 'NodePort' || (type === 'LoadBalancer' && at(spec, 'allocateLoadBalancerNodePorts') !== false),
    mayHaveNodePorts: exposed,
    wantsHealthCheck: type === 'LoadBalancer' && textAt(spec, 'externalTrafficPolicy') === 'Local',
    healthCheckNodePort: portNumber(numberAt(spec, 'healthCheckNodePort')),
    claim: typeof claim === 'string' ? claim : undefined,
    age: `${textAt(metadata, 'creationTimestamp')} ${textAt(metadata, 'uid')} ${keyOf(service)}`,
  };
}

/** All values in a Service's spec. They are in use whatever its type is. */
export function specValues(view: ServiceView): Set<AllocatedValue> {
  const values = new Set<AllocatedValue>();
  for (const text of view.clusterIPs) {
    const address = parseAddress(text)?.canonical;
    if (address !== undefined) values.add(address);
  }
  for (const { nodePort } of view.ports) if (nodePort > 0) values.add(String(nodePort));
  if (view.healthCheckNodePort > 0) values.add(String(view.healthCheckNodePort));
  return values;
}

/** A parsed claim. */
export interface AllocationClaim {
  readonly addresses: readonly string[];
  readonly ports: readonly number[];
}

/** Most characters of a claim; more than a Service with the most ports needs. */
const maxClaimLength = 10_000;

/** Parses a claim; undefined if it is invalid. */
export function parseClaim(text: string): AllocationClaim | undefined {
  if (text.length > maxClaimLength) return undefined;
  const addresses: string[] = [];
  const ports: number[] = [];
  for (const item of text.split(',')) {
    if (/^[1-9]\d{0,4}$/.test(item) && Number(item) <= 65535) ports.push(Number(item));
    else if (parseAddress(item)?.canonical === item) addresses.push(item);
    else return undefined;
  }
  return { addresses, ports };
}

export function formatClaim({ addresses, ports }: AllocationClaim): string {
  return [...addresses, ...ports].join(',');
}

/** The values of a Service's claim. */
export function claimValues(view: ServiceView): AllocatedValue[] {
  const claim = view.claim === undefined ? undefined : parseClaim(view.claim);
  return claim === undefined ? [] : [...claim.addresses, ...claim.ports.map(String)];
}

/** The family of an address in any spelling. */
export function familyOf(text: string): IPFamily | undefined {
  return parseAddress(text)?.family;
}

function portNumber(value: number): number {
  return Number.isInteger(value) && value > 0 && value <= 65535 ? value : 0;
}

/** A problem of a Service or an IPAddress. */
export interface AllocationProblem {
  readonly reason: AllocationReason;
  /** For users: one sentence, kube-apiserver's where it has one. */
  readonly message: string;
}
