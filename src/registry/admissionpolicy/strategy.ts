import type { KubeObject } from '../../objects/meta.ts';
import { genericStrategy, type KindRules, specChanges } from '../generic.ts';
import { nameIsDNSSubdomain } from '../names.ts';

/** This server has no CEL: whoever makes a policy must be told that it does nothing. */
const notEnforced =
  'admission policies are stored but not enforced by this API server: their CEL is never evaluated';

const rules: KindRules<KubeObject> = {
  namespaced: false,
  nameRule: nameIsDNSSubdomain,
  allowUnconditionalUpdate: false,
  generationChanges: specChanges,
  warningsOnCreate: () => [notEnforced],
};

/** ValidatingAdmissionPolicies, which report type checks in a status. */
export const admissionPolicyStrategy = genericStrategy({ ...rules, hasStatus: true });

/** MutatingAdmissionPolicies and the bindings of both kinds. */
export const plainAdmissionPolicyStrategy = genericStrategy(rules);
