import { podResources } from '../../objects/pods.ts';
import type { EventReason } from '../../objects/reasons.ts';
import { parseQuantity } from '../../objects/quantity.ts';
import type { Node, Pod } from '../../objects/types/core.generated.ts';
import { hostPortsCollide } from '../scheduler/occupancy.ts';
import { matchesNode } from '../scheduler/plan-nodes.ts';
import { forbiddenSysctl } from './sysctls.ts';

/** Why a kubelet does not take a Pod: the reason and the message of its Event. */
export interface Refusal {
  readonly reason: EventReason;
  readonly message: string;
}

/**
 * Whether a kubelet takes a Pod that has come to its node by whatever way (pkg/kubelet/lifecycle/predicate.go,
 * `AdmissionCheck` of the scheduler).
 *
 * @param others the Pods that it has taken and that have not ended.
 */
export function refuseAdmission(pod: Pod, node: Node, others: readonly Pod[]): Refusal | undefined {
  const sysctl = forbiddenSysctl(pod);
  if (sysctl !== undefined) return { reason: 'SysctlForbidden', message: sysctl };
  const { allocatable = {} } = node.status;
  const capacity = Number(allocatable['pods'] ?? 110);
  if (others.length >= capacity) return outOf('pods', 1n, BigInt(others.length), BigInt(capacity));
  for (const [name, amount] of podResources(pod, 'requests')) {
    const quantity = allocatable[name];
    // A kubelet does not know of further resources that its node has not.
    if (quantity === undefined || amount === 0n) continue;
    const unit = name === 'cpu' ? 1_000_000n : 1_000_000_000n;
    const used = others.reduce((sum, other) => sum + (podResources(other, 'requests').get(name) ?? 0n), 0n);
    const all = parseQuantity(quantity).nanos;
    if (amount > all - used) return outOf(name, amount / unit, used / unit, all / unit);
  }
  if (!matchesNode(pod.spec, node)) {
    return failed('NodeAffinity', "node(s) didn't match Pod's node affinity/selector");
  }
  if (others.some((other) => hostPortsCollide(pod, other))) {
    return failed('NodePorts', "node(s) didn't have free ports for the requested pod ports");
  }
  return undefined;
}

/** Amounts of `cpu` are in thousandths, as Kubernetes prints them. */
function outOf(name: string, requested: bigint, used: bigint, capacity: bigint): Refusal {
  return {
    reason: `OutOf${name}`,
    message: `Node didn't have enough resource: ${name}, requested: ${requested}, used: ${used}, capacity: ${capacity}`,
  };
}

function failed(predicate: 'NodeAffinity' | 'NodePorts', why: string): Refusal {
  return { reason: predicate, message: `Predicate ${predicate} failed: ${why}` };
}
