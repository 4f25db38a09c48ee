/** What the policies of a Job say of its Pods (pkg/controller/job/pod_failure_policy.go, success_policy.go). */
import type { Job, PodFailurePolicyOnExitCodesRequirement } from '../../../objects/types/batch.generated.ts';
import type { ContainerStatus, Pod } from '../../../objects/types/core.generated.ts';

/** What a failed Pod means; `fail`: the Job ends, with this message. */
export type Failure =
  | { readonly kind: 'count' | 'ignore' | 'failIndex' }
  | { readonly kind: 'failJob'; readonly message: string };

/** The first rule of `podFailurePolicy` that matches decides; without one a failure counts. */
export function failureOf(job: Job, pod: Pod): Failure {
  const name = `${pod.metadata.namespace ?? ''}/${pod.metadata.name ?? ''}`;
  for (const [index, rule] of (job.spec.podFailurePolicy?.rules ?? []).entries()) {
    const { action, onExitCodes, onPodConditions = [] } = rule;
    const by = `matching ${action} rule at index ${index}`;
    let message: string | undefined;
    if (onExitCodes === undefined) {
      const condition = (pod.status.conditions ?? []).find(({ type, status }) =>
        onPodConditions.some((wanted) => wanted.type === type && (wanted.status ?? 'True') === status),
      );
      message = condition && `Pod ${name} has condition ${condition.type} ${by}`;
    } else {
      const ended = exitOf(pod, onExitCodes);
      const code = ended?.state?.terminated?.exitCode ?? 0;
      message = ended && `Container ${ended.name} for pod ${name} failed with exit code ${code} ${by}`;
    }
    if (message === undefined) continue;
    if (action === 'Ignore') return { kind: 'ignore' };
    if (action === 'FailIndex') return { kind: 'failIndex' };
    return action === 'FailJob' ? { kind: 'failJob', message } : { kind: 'count' };
  }
  return { kind: 'count' };
}

/** A container that has ended as a rule says, those of the Pod before those of its beginning. */
function exitOf(
  { status }: Pod,
  { containerName, operator, values }: PodFailurePolicyOnExitCodesRequirement,
): ContainerStatus | undefined {
  return [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])].find(
    ({ name, state }) => {
      const code = state?.terminated?.exitCode ?? 0;
      if (code === 0 || (containerName !== undefined && containerName !== name)) return false;
      return (values ?? []).includes(code) === (operator === 'In');
    },
  );
}

/** The rule of `successPolicy` that the completed indexes meet, as the message of the condition; undefined: none. */
export function metSuccessPolicy(job: Job, done: ReadonlySet<number>): string | undefined {
  if (done.size === 0) return undefined;
  const met = (job.spec.successPolicy?.rules ?? []).findIndex(({ succeededIndexes, succeededCount }) => {
    if (succeededIndexes === undefined) return succeededCount !== undefined && done.size >= succeededCount;
    const wanted = parseIndexes(succeededIndexes, job.spec.completions ?? 0);
    if (wanted.size === 0) return false;
    const reached = [...wanted].filter((index) => done.has(index)).length;
    return reached === wanted.size || (succeededCount !== undefined && reached >= succeededCount);
  });
  return met === -1 ? undefined : `Matched rules at index ${met}`;
}

/** `0-2,5`, those below a limit. */
export function parseIndexes(text: string, completions: number): ReadonlySet<number> {
  const indexes = new Set<number>();
  for (const part of text.split(',')) {
    const [, from = '', to = from] = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(part) ?? [];
    if (from === '') continue;
    for (let index = Number(from); index <= Number(to) && index < completions; index++) indexes.add(index);
  }
  return indexes;
}
