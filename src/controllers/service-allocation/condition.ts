import type { Condition } from '../../objects/meta.ts';
import { isRecord } from '../../objects/json.ts';
import { listAt, textAt } from '../../objects/read.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type { AllocationProblem } from './reasons.ts';

/** Whether a Service has all addresses and ports that it requests. Only on Services that once had not. */
const allocatedCondition = 'servicenet.dev/Allocated';

/** New conditions of a Service. */
export interface ConditionChange {
  readonly conditions: readonly unknown[];
  readonly problem: AllocationProblem | undefined;
}

function isAllocated(condition: unknown): boolean {
  return textAt(condition, 'type') === allocatedCondition;
}

/** Whether the condition of a Service has this problem already. */
export function isReported({ status }: Service, { reason, message }: AllocationProblem): boolean {
  const present = listAt(status, 'conditions').find(isAllocated);
  return textAt(present, 'reason') === reason && textAt(present, 'message') === message;
}

/** The change of a Service's conditions; undefined if there is none. @param time RFC 3339. */
export function changeCondition(
  service: Service,
  problem: AllocationProblem | undefined,
  time: string,
): ConditionChange | undefined {
  const all = listAt(service.status, 'conditions');
  const present = all.find(isAllocated);
  const status = problem === undefined ? 'True' : 'False';
  if (present === undefined && problem === undefined) return undefined;
  const reason = problem?.reason ?? 'Allocated';
  const message = problem?.message ?? '';
  const same = textAt(present, 'status') === status;
  if (same && textAt(present, 'reason') === reason && textAt(present, 'message') === message)
    return undefined;
  const since = same && isRecord(present) ? textAt(present, 'lastTransitionTime') : time;
  const condition: Condition = {
    type: allocatedCondition,
    status,
    lastTransitionTime: since,
    reason,
    message,
  };
  return { conditions: [...all.filter((item) => item !== present), condition], problem };
}
