import type { AllocationReason } from '../../objects/reasons.ts';
import { parseAddress } from '../../objects/address.ts';
import { type AllocationState, isManagedAddress, serviceOf } from './allocation-state.ts';
import { type ServiceView, type AllocationProblem, viewOf } from './plan-view.ts';
import { keyOf, type ObjectKey } from '../../objects/meta.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type { IPAddress } from '../../objects/types/networking.generated.ts';

/** Problems of the addresses and node ports in a Service's spec. Pure. */

/** The first problem. If two Services have one value, the problem is the younger one's. */
export function planProblem(view: ServiceView, allocations: AllocationState): AllocationProblem | undefined {
  for (const problem of allocationProblems(view, allocations)) return problem;
  return undefined;
}

/** All problems, with the messages of kube-apiserver's repair loops. */
function* allocationProblems(
  view: ServiceView,
  allocations: AllocationState,
): Generator<AllocationProblem & { readonly value: string }> {
  if (view.type !== 'ExternalName') {
    for (const text of view.clusterIPs) yield* addressProblems(view, allocations, text);
  }
  if (!view.mayHaveNodePorts) return;
  const ports = new Set([...view.ports.map(({ nodePort }) => nodePort), view.healthCheckNodePort]);
  ports.delete(0);
  for (const port of ports) yield* portProblems(view, allocations, port);
}

function* addressProblems(
  view: ServiceView,
  allocations: AllocationState,
  text: string,
): Generator<AllocationProblem & { readonly value: string }> {
  const shown = text.slice(0, 64);
  const address = parseAddress(text);
  if (address === undefined) {
    const message = `Cluster IP ${shown} is not a valid IP; please recreate Service`;
    yield { reason: 'ClusterIPNotValid', message, value: shown };
    return;
  }
  const { canonical, family } = address;
  if (!allocations.inRange(canonical)) {
    const message = `Cluster IP [${family}]: ${shown} is not within any configured Service CIDR; please recreate service`;
    yield { reason: 'ClusterIPOutOfRange', message, value: canonical };
  }
  if (isYounger(view, allocations, canonical)) {
    const message = `Cluster IP [${family}]:${shown} was assigned to multiple services; please recreate service`;
    yield { reason: 'ClusterIPAlreadyAllocated', message, value: canonical };
  }
}

function* portProblems(
  view: ServiceView,
  allocations: AllocationState,
  port: number,
): Generator<AllocationProblem & { readonly value: string }> {
  const value = String(port);
  if (!allocations.hasPort(port)) {
    const message = `Port ${port} is not within the port range ${allocations.nodePorts.range}; please recreate service`;
    yield { reason: 'PortOutOfRange', message, value };
  }
  if (isYounger(view, allocations, value)) {
    const message = `Port ${port} was assigned to multiple services; please recreate service`;
    yield { reason: 'PortAlreadyAllocated', message, value };
  }
}

function isYounger(view: ServiceView, allocations: AllocationState, value: string): boolean {
  return allocations.usesByOthers(value, view.key).some(({ how, age }) => how === 'spec' && age < view.age);
}

/** Finds inconsistent addresses and node ports in a cluster whose API server allocates them. Pure. */

/** One inconsistency. */
export interface Finding extends AllocationProblem {
  readonly kind: 'Service' | 'IPAddress';
  /** `namespace/name` of the Service, or the IPAddress's name. */
  readonly key: ObjectKey;
  /** The address or node port. */
  readonly value: string;
}

/** The input of an audit. */
export interface AuditInput {
  /** Of all Services. */
  readonly allocations: AllocationState;
  readonly services: Iterable<Service>;
  /** By name; undefined if the server has no IPAddresses. */
  readonly addresses: AddressReader | undefined;
  readonly serviceOfKey: (key: ObjectKey) => Service | undefined;
}

interface AddressReader {
  get(name: string): IPAddress | undefined;
  values(): Iterable<IPAddress>;
}

/** All findings, in no order; undefined after each object, so that the caller can yield to the event loop. */
export function* planAudit({
  allocations,
  services,
  addresses,
  serviceOfKey,
}: AuditInput): Generator<Finding | undefined> {
  for (const service of services) {
    const view = viewOf(service);
    for (const problem of allocationProblems(view, allocations))
      yield { ...problem, kind: 'Service', key: view.key };
    if (addresses !== undefined) yield* addressesWithoutObject(view, allocations, addresses);
    yield undefined;
  }
  for (const address of addresses?.values() ?? []) {
    yield isManagedAddress(address) ? orphaned(address, serviceOfKey) : undefined;
  }
}

/** Addresses without an IPAddress object of their Service. */
function* addressesWithoutObject(
  view: ServiceView,
  allocations: AllocationState,
  addresses: AddressReader,
): Generator<Finding> {
  if (view.type === 'ExternalName') return;
  const finding = (value: string, message: string): Finding => {
    return { kind: 'Service', key: view.key, value, reason: 'ClusterIPNotAllocated', message };
  };
  for (const text of view.clusterIPs) {
    const parsed = parseAddress(text);
    if (parsed === undefined) continue;
    const { canonical, family } = parsed;
    const object = addresses.get(canonical);
    if (object === undefined) {
      yield finding(canonical, `Cluster IP [${family}]: ${canonical} is not allocated`);
      continue;
    }
    const owner = serviceOf(object);
    if (owner === view.key) continue;
    // The younger of two Services with one address has its own finding.
    if (allocations.usesByOthers(canonical, view.key).length > 0) continue;
    const message = `the ClusterIP [${family}]: ${canonical} for Service ${view.key} has a wrong reference`;
    yield finding(canonical, message);
  }
}

/** An IPAddress without a Service that has its address. */
function orphaned(
  address: IPAddress,
  serviceOfKey: (key: ObjectKey) => Service | undefined,
): Finding | undefined {
  const name = address.metadata.name ?? '';
  const owner = serviceOf(address);
  const finding = (reason: AllocationReason, message: string): Finding => {
    return { kind: 'IPAddress', key: keyOf(address), value: name, reason, message };
  };
  if (owner === '') return finding('IPAddressNotAllocated', `IPAddress ${name} does not reference a Service`);
  const service = serviceOfKey(owner);
  if (service === undefined) {
    return finding('IPAddressNotAllocated', `IPAddress ${name} for Service ${owner} appears to have leaked`);
  }
  const view = viewOf(service);
  const has =
    view.type !== 'ExternalName' && view.clusterIPs.some((text) => parseAddress(text)?.canonical === name);
  if (has) return undefined;
  return finding('IPAddressWrongReference', `IPAddress ${name} for Service ${owner} has a wrong reference`);
}
