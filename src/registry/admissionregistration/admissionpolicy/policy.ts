import type {
  MutatingAdmissionPolicySpec,
  ValidatingAdmissionPolicyBinding,
  ValidatingAdmissionPolicySpec,
} from '../../../objects/types/admissionregistration.generated.ts';

/** What policies of both kinds have. */
export type CommonPolicySpec = Pick<
  ValidatingAdmissionPolicySpec & MutatingAdmissionPolicySpec,
  'paramKind' | 'matchConstraints' | 'variables' | 'matchConditions' | 'failurePolicy'
>;

/** A ValidatingAdmissionPolicyBinding, or a MutatingAdmissionPolicyBinding, which has no actions. */
export type PolicyBinding = ValidatingAdmissionPolicyBinding;
