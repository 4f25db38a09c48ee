import type { KubeObject } from '../../objects/meta.ts';
import { loadRuleEngine } from '../cel/on-demand.ts';
import { genericStrategy, type KindRules, specChanges } from '../generic.ts';
import { nameIsDNSSubdomain } from '../names.ts';
import type { Strategy } from '../strategy.ts';
import type { ValidatingAdmissionPolicy } from './policy.ts';
import { validatePolicySpec } from './validation.ts';

const rules: KindRules<KubeObject> = {
  namespaced: false,
  nameRule: nameIsDNSSubdomain,
  allowUnconditionalUpdate: false,
  generationChanges: specChanges,
};

/** ValidatingAdmissionPolicies. */
export const validatingPolicyStrategy: Strategy<ValidatingAdmissionPolicy> = {
  ...genericStrategy<ValidatingAdmissionPolicy>({
    ...rules,
    hasStatus: true,
    repeatsCreate: 'after',
    setDefaults({ spec }) {
      if (spec === undefined) return;
      spec.failurePolicy ??= 'Fail';
      const match = spec.matchConstraints;
      if (match === undefined) return;
      match.matchPolicy ??= 'Equivalent';
      match.namespaceSelector ??= {};
      match.objectSelector ??= {};
      for (const rule of [...(match.resourceRules ?? []), ...(match.excludeResourceRules ?? [])])
        rule.scope ??= '*';
    },
    validateCreate: ({ spec = {} }) => validatePolicySpec(spec),
  }),
  ready: () => loadRuleEngine(),
};

/** Bindings of ValidatingAdmissionPolicies. */
export const policyBindingStrategy = genericStrategy(rules);

const notEnforced =
  'mutating admission policies are stored but not enforced by this API server: their CEL is never evaluated';

/** MutatingAdmissionPolicies and their bindings: whoever makes one must be told that it does nothing. */
export const mutatingPolicyStrategy = genericStrategy({ ...rules, warningsOnCreate: () => [notEnforced] });
