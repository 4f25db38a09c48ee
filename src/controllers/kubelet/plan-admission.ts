import { podResources } from '../../objects/pods.ts';
import type { EventReason } from '../../objects/reasons.ts';
import type { Node, Pod } from '../../objects/types/core.generated.ts';
import { hostPortsCollide } from '../scheduler/occupancy.ts';
import { matchesNode } from '../scheduler/plan-nodes.ts';
import { lackOf } from './plan-resize.ts';
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
  if (others.length >= capacity) {
    const amounts = `requested: 1, used: ${others.length}, capacity: ${capacity}`;
    return { reason: 'OutOfpods', message: `Node didn't have enough resource: pods, ${amounts}` };
  }
  const lack = lackOf(podResources(pod, 'requests'), node, others);
  if (lack !== undefined) return { reason: `OutOf${lack.name}`, message: lack.message };
  if (!matchesNode(pod.spec, node)) {
    return failed('NodeAffinity', "node(s) didn't match Pod's node affinity/selector");
  }
  if (others.some((other) => hostPortsCollide(pod, other))) {
    return failed('NodePorts', "node(s) didn't have free ports for the requested pod ports");
  }
  return undefined;
}

function failed(predicate: 'NodeAffinity' | 'NodePorts', why: string): Refusal {
  return { reason: predicate, message: `Predicate ${predicate} failed: ${why}` };
}
