import type { RuntimeClass } from '../../objects/types/node.generated.ts';
import { pushAll } from '../../objects/lists.ts';
import { type FieldError, invalid } from '../validation/field-errors.ts';
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
  immutable: ['handler'],
});

function validateCreate({ handler, overhead, scheduling }: RuntimeClass): FieldError[] {
  const errors = nameIsDNSLabel(handler, false).map((message) => invalid('handler', handler, message));
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
