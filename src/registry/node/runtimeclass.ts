import type { RuntimeClass } from '../../objects/types/node.generated.ts';
import { pushAll } from '../../objects/lists.ts';
import { declarative, type FieldError, invalid, required } from '../validation/field-errors.ts';
import { genericStrategy } from '../generic/generic.ts';
import { validateLabels } from '../validation/label-selector.ts';
import { nameIsDNSLabel, nameIsDNSSubdomain } from '../../objects/names.ts';
import { validateResources } from '../core/pod/containers.ts';

import { validateTolerations } from '../core/pod/scheduling.ts';

/** The rules of RuntimeClasses (`apis/node/validation` ValidateRuntimeClass). */
export const runtimeClassStrategy = genericStrategy<RuntimeClass>({
  namespaced: false,
  nameRule: nameIsDNSSubdomain,
  allowUnconditionalUpdate: false,
  validateCreate,
  declaredImmutable: ['handler'],
});

function validateCreate({ handler, overhead, scheduling }: RuntimeClass): FieldError[] {
  const faults = handler === '' ? [required('handler')] : [];
  if (handler !== '')
    for (const message of nameIsDNSLabel(handler, false)) faults.push(invalid('handler', handler, message));
  const errors = faults.map(declarative);
  // The overhead is validated as the limits of a container.
  if (overhead !== undefined)
    pushAll(errors, validateResources({ limits: overhead.podFixed ?? {} }, 'overhead'));
  if (scheduling === undefined) return errors;
  return [
    ...errors,
    ...validateLabels(scheduling.nodeSelector, 'scheduling.nodeSelector'),
    ...validateTolerations(scheduling.tolerations ?? [], 'scheduling.tolerations'),
  ];
}
