import { pushAll } from '../../../objects/lists.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { type FieldError, invalid } from '../../validation/field-errors.ts';
import { genericStrategy } from '../../generic/generic.ts';
import { validateImmutableField, validateLabels } from '../../generic/metadata.ts';
import { nameIsDNSLabel, nameIsDNSSubdomain } from '../../validation/names.ts';
import { validateResources } from '../../core/pod/containers.ts';
import { validateTolerations } from '../../core/pod/tolerations.ts';
import type { Toleration } from '../../core/pod/types.ts';

/** Node.k8s.io/v1 RuntimeClass. */
export interface RuntimeClass extends KubeObject {
  handler?: string;
  overhead?: { podFixed?: Record<string, string> };
  scheduling?: { nodeSelector?: Record<string, string>; tolerations?: Toleration[] };
}

/** The rules of RuntimeClasses (`apis/node/validation` ValidateRuntimeClass). */
export const runtimeClassStrategy = genericStrategy<RuntimeClass>({
  namespaced: false,
  nameRule: nameIsDNSSubdomain,
  allowUnconditionalUpdate: false,
  validateCreate,
  validateUpdate: ({ handler = '' }, old) => validateImmutableField(handler, old.handler ?? '', 'handler'),
});

function validateCreate({ handler = '', overhead, scheduling }: RuntimeClass): FieldError[] {
  const errors = nameIsDNSLabel(handler, false).map((message) => invalid('handler', handler, message));
  // The overhead is checked as the limits of a container are.
  if (overhead !== undefined)
    pushAll(errors, validateResources({ limits: overhead.podFixed ?? {} }, 'overhead'));
  if (scheduling === undefined) return errors;
  return [
    ...errors,
    ...validateLabels(scheduling.nodeSelector, 'scheduling.nodeSelector'),
    ...validateTolerations(scheduling.tolerations ?? [], 'scheduling.tolerations'),
  ];
}
