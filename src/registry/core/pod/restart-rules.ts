import type { Container, PodSpec } from '../../../objects/types/core.generated.ts';
import { type FieldError, notSupported, required, tooMany } from '../../validation/field-errors.ts';

const policies = ['Always', 'Never', 'OnFailure'];
const operators = ['In', 'NotIn'];
const maxRules = 20;
const maxExitCodes = 255;

/** The restart policy of a container of its own, and its rules by exit code (`validateContainerRestartPolicy`). */
export function validateRestartRules(
  { restartPolicy, restartPolicyRules: rules = [] }: Partial<Container>,
  path: string,
): FieldError[] {
  const at = `${path}.restartPolicyRules`;
  const errors: FieldError[] = [];
  if (restartPolicy === undefined) {
    if (rules.length === 0) return errors;
    errors.push(required(`${path}.restartPolicy`, 'must specify restartPolicy when restart rules are used'));
  } else if (!policies.includes(restartPolicy)) {
    errors.push(notSupported(`${path}.restartPolicy`, restartPolicy, policies));
  }
  if (rules.length > maxRules) errors.push(tooMany(at, rules.length, maxRules));
  rules.forEach(({ action = '', exitCodes }, i) => {
    const rule = `${at}[${i}]`;
    if (action !== 'Restart') errors.push(notSupported(`${rule}.action`, action, ['Restart']));
    if (exitCodes === undefined) {
      errors.push(required(`${rule}.exitCodes`, 'must be specified'));
      return;
    }
    const { operator = '', values = [] } = exitCodes;
    if (!operators.includes(operator)) {
      errors.push(notSupported(`${rule}.exitCodes.operator`, operator, operators));
    }
    if (values.length > maxExitCodes) {
      errors.push(tooMany(`${rule}.exitCodes.values`, values.length, maxExitCodes));
    }
  });
  return errors;
}

/** Whether a container that ended with this code starts again (`pkg/api/v1/pod` ContainerShouldRestart). */
export function restarts(
  { restartPolicy, restartPolicyRules: rules = [] }: Container,
  spec: PodSpec,
  exitCode: number,
): boolean {
  if (restartPolicy !== undefined) {
    const matches = rules.some(({ exitCodes }) => {
      const listed = exitCodes?.values?.includes(exitCode) ?? false;
      return exitCodes?.operator === 'In' ? listed : exitCodes?.operator === 'NotIn' && !listed;
    });
    if (matches) return true;
  }
  const policy = restartPolicy ?? spec.restartPolicy;
  return policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0);
}
