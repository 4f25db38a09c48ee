import type { Lease } from '../../objects/types/coordination.generated.ts';
import { type FieldError, invalid } from '../validation/field-errors.ts';
import { genericStrategy } from '../generic/generic.ts';
import { nameIsDNSSubdomain } from '../../objects/names.ts';

/** The rules of Leases (`apis/coordination/validation`). */
export const leaseStrategy = genericStrategy<Lease>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  metadataRules: 'machinery',
  allowCreateOnUpdate: true,
  allowUnconditionalUpdate: false,
  setDefaults(lease: Partial<Pick<Lease, 'spec'>>) {
    lease.spec ??= {};
  },
  // CoordinatedLeaderElection
  disabled: [[['spec', 'strategy']], [['spec', 'preferredHolder']]],
  validateCreate: validateSpec,
  validateUpdate: validateSpec,
});

function validateSpec({ spec }: Lease): FieldError[] {
  const errors: FieldError[] = [];
  if (spec.leaseDurationSeconds !== undefined && spec.leaseDurationSeconds <= 0) {
    errors.push(invalid('spec.leaseDurationSeconds', spec.leaseDurationSeconds, 'must be greater than 0'));
  }
  if (spec.leaseTransitions !== undefined && spec.leaseTransitions < 0) {
    const detail = 'must be greater than or equal to 0';
    errors.push(invalid('spec.leaseTransitions', spec.leaseTransitions, detail));
  }
  return errors;
}
