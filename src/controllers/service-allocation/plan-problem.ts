/** Problems of the addresses and node ports in a Service's spec. Pure. */
import { parseAddress } from '../../objects/address.ts';
import type { AllocationState } from './allocation-state.ts';
import type { ServiceView } from './plan-view.ts';
import type { AllocationProblem } from './reasons.ts';

/** The first problem. If two Services have one value, the problem is the younger one's. */
export function planProblem(view: ServiceView, allocations: AllocationState): AllocationProblem | undefined {
  for (const problem of allocationProblems(view, allocations)) return problem;
  return undefined;
}

/** All problems, with the messages of kube-apiserver's repair loops. */
export function* allocationProblems(
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
