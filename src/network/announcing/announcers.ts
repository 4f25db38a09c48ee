import type { Node } from '../../objects/types/core.generated.ts';
import { conditionStatus } from '../../objects/read.ts';
import type { NodeReport } from './agent-report.ts';
import type { Announcer } from './announcement-plan.ts';

/** A node and its agent's report, in the planner's form. */
export function announcerOf(
  { metadata, spec, status }: Node,
  { interfaces, sessions, refused }: NodeReport,
  isAlive: boolean,
): Announcer {
  return {
    node: metadata.name ?? '',
    labels: metadata.labels ?? {},
    // A Node without a Ready condition keeps its addresses.
    isReady: (conditionStatus(status.conditions ?? [], 'Ready') ?? 'True') === 'True',
    isCordoned: spec.unschedulable === true,
    ...{ isAlive, interfaces, sessions, refused },
  };
}
