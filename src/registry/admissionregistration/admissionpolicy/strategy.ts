import type {
  MatchResources,
  MutatingAdmissionPolicy,
  ValidatingAdmissionPolicy,
} from '../../../objects/types/admissionregistration.generated.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { type FieldError, notSupported, required } from '../../validation/field-errors.ts';
import { genericStrategy, type KindRules, resetMetaForStatus, specChanges } from '../../generic/generic.ts';
import { nameIsDNSSubdomain } from '../../../objects/names.ts';
import type { Strategy } from '../../generic/strategy.ts';
import type { CommonPolicySpec, PolicyBinding } from './policy.ts';
import { validateMutatingSpec, validatePolicySpec } from './validation.ts';

const rules: KindRules<KubeObject> = {
  namespaced: false,
  nameRule: nameIsDNSSubdomain,
  metadataRules: 'machinery',
  allowUnconditionalUpdate: false,
  generationChanges: specChanges,
};

function setMatchDefaults(match: MatchResources | undefined): void {
  if (match === undefined) return;
  match.matchPolicy ??= 'Equivalent';
  match.namespaceSelector ??= {};
  match.objectSelector ??= {};
  for (const rule of [...(match.resourceRules ?? []), ...(match.excludeResourceRules ?? [])])
    rule.scope ??= '*';
}

function setPolicyDefaults({ spec }: { spec?: CommonPolicySpec }): void {
  if (spec === undefined) return;
  spec.failurePolicy ??= 'Fail';
  setMatchDefaults(spec.matchConstraints);
}

/** ValidatingAdmissionPolicies. */
export const validatingPolicyStrategy: Strategy<ValidatingAdmissionPolicy> = {
  ...genericStrategy<ValidatingAdmissionPolicy>({
    ...rules,
    hasStatus: true,
    statusResets: [['metadata']],
    prepareStatus: resetMetaForStatus,
    repeatsCreate: 'instead',
    setDefaults: setPolicyDefaults,
    validateCreate: ({ spec }) => validatePolicySpec(spec),
  }),
};

/** MutatingAdmissionPolicies. */
export const mutatingPolicyStrategy: Strategy<MutatingAdmissionPolicy> = {
  ...genericStrategy<MutatingAdmissionPolicy>({
    ...rules,
    repeatsCreate: 'instead',
    setDefaults: setPolicyDefaults,
    validateCreate: ({ spec }) => validateMutatingSpec(spec),
  }),
};

const actions = ['Audit', 'Deny', 'Warn'];

/** `validationActions` of a ValidatingAdmissionPolicy's binding. */
function validateActions({ spec }: PolicyBinding): FieldError[] {
  const found = spec.validationActions ?? [];
  if (found.length === 0) return [required('spec.validationActions')];
  return found.flatMap((action, i) =>
    actions.includes(action) ? [] : [notSupported(`spec.validationActions[${i}]`, action, actions)],
  );
}

function validateReference({ spec }: PolicyBinding): FieldError[] {
  return (spec.policyName ?? '') === '' ? [required('spec.policyName')] : [];
}

const bindingRules: KindRules<PolicyBinding> = {
  ...rules,
  generationChanges: specChanges,
  repeatsCreate: 'instead',
  setDefaults: ({ spec }) => setMatchDefaults(spec.matchResources),
};

/** Bindings of ValidatingAdmissionPolicies. */
export const validatingBindingStrategy = genericStrategy<PolicyBinding>({
  ...bindingRules,
  validateCreate: (binding) => [...validateReference(binding), ...validateActions(binding)],
});

/** Bindings of MutatingAdmissionPolicies. */
export const mutatingBindingStrategy = genericStrategy<PolicyBinding>({
  ...bindingRules,
  validateCreate: validateReference,
});
