import type { Condition } from '../../objects/meta.ts';
import { isRecord } from '../../objects/json.ts';
import { listAt, textAt } from '../../objects/read.ts';
import type { Service } from '../../objects/core.generated.ts';
import type { Problem } from './reasons.ts';

/** Says whether a Service has all addresses and ports that it asks for. Only on those that once had not. */
const allocatedCondition = 'servicenet.dev/Allocated';

/** What a Service's condition should become. */
export interface ConditionChange {
  readonly conditions: readonly unknown[];
  readonly problem: Problem | undefined;
}

function isAllocated(condition: unknown): boolean {
  return textAt(condition, 'type') === allocatedCondition;
}

/** Whether the conditions of a Service say this already. */
export function isTold({ status }: Service, { reason, message }: Problem): boolean {
  const present = listAt(status, 'conditions').find(isAllocated);
  return textAt(present, 'reason') === reason && textAt(present, 'message') === message;
}

/** The change of a Service's conditions; undefined when they say it already. @param time RFC 3339. */
export function changeCondition(
  service: Service,
  problem: Problem | undefined,
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
