import type { KubeObject } from '../../objects/meta.ts';
import { invalid } from '../validation/field-errors.ts';
import type { Strategy } from '../generic/strategy.ts';

/** Names of configurations that an API server reads from files at its start. */
const suffix = '.static.k8s.io';
const fault = `names ending with "${suffix}" are reserved for static manifest-based configurations and cannot be managed via the API`;

/**
 * New objects may not have such a name, updates of one that has it are warned of
 * (`apis/admissionregistration/validation/static_suffix.go`).
 */
export function refusingStaticNames<T extends KubeObject>(strategy: Strategy<T>): Strategy<T> {
  return {
    ...strategy,
    validateCreate(object, context) {
      const errors = strategy.validateCreate(object, context);
      const { name = '' } = object.metadata;
      return name.endsWith(suffix) ? [...errors, invalid('metadata.name', name, fault)] : errors;
    },
    warningsOnUpdate(object, old) {
      const warnings = strategy.warningsOnUpdate?.(object, old) ?? [];
      const isStatic = object.metadata.name?.endsWith(suffix) === true;
      return isStatic ? [`metadata.name: ${fault}`, ...warnings] : warnings;
    },
  };
}
