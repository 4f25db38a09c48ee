import type {
  MutatingAdmissionPolicySpec,
  ValidatingAdmissionPolicyBinding,
  ValidatingAdmissionPolicySpec,
} from '../../../objects/types/admissionregistration.generated.ts';

/** The members of policies of both kinds. */
export type CommonPolicySpec = Pick<
  ValidatingAdmissionPolicySpec & MutatingAdmissionPolicySpec,
  'paramKind' | 'matchConstraints' | 'variables' | 'matchConditions' | 'failurePolicy'
>;

/** A ValidatingAdmissionPolicyBinding, or a MutatingAdmissionPolicyBinding, which has no actions. */
export type PolicyBinding = ValidatingAdmissionPolicyBinding;
