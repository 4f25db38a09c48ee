import type { NetworkPolicy } from '../../../objects/types/networking.generated.ts';
import { genericStrategy, specChanges } from '../../generic/generic.ts';
import { validateLabelSelector } from '../../validation/label-selector.ts';
import { nameIsDNSSubdomain } from '../../../objects/names.ts';
import { warningsForCidr } from '../../validation/network.ts';
import { rulesOf, type Exemptions, noExemptions, validateNetworkPolicy } from './validation.ts';

/** The rules of NetworkPolicies (`pkg/registry/networking/networkpolicy/strategy.go`). */
export const networkPolicyStrategy = genericStrategy<NetworkPolicy>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  generationChanges: specChanges,
  repeatsCreate: 'before',
  setDefaults(policy: Partial<Pick<NetworkPolicy, 'spec'>>) {
    const spec = (policy.spec ??= { podSelector: {} });
    for (const { ports } of rulesOf(spec)) {
      for (const port of ports) port.protocol ??= 'TCP';
    }
    if ((spec.policyTypes ?? []).length > 0) return;
    spec.policyTypes = (spec.egress ?? []).length === 0 ? ['Ingress'] : ['Ingress', 'Egress'];
  },
  validateCreate: (policy) => validateNetworkPolicy(policy, noExemptions),
  validateUpdate: (policy, old) => validateNetworkPolicy(policy, exemptionsOf(old)),
  warningsOnCreate: blockWarnings,
  warningsOnUpdate: blockWarnings,
});

function exemptionsOf({ spec }: NetworkPolicy): Exemptions {
  return {
    invalidLabelValues: validateLabelSelector(spec.podSelector, '').length > 0,
    cidrs: rulesOf(spec)
      .flatMap(({ peers }) => peers)
      .flatMap(({ ipBlock }) => (ipBlock === undefined ? [] : [ipBlock.cidr, ...(ipBlock.except ?? [])])),
  };
}

function blockWarnings({ spec }: NetworkPolicy): string[] {
  return rulesOf(spec).flatMap(({ peers, peersPath }) =>
    peers.flatMap(({ ipBlock: { cidr = '', except = [] } = {} }, i) => {
      const path = `${peersPath}[${i}].ipBlock`;
      return [
        ...warningsForCidr(cidr, `${path}.cidr`),
        ...except.flatMap((text, j) => warningsForCidr(text, `${path}.except[${j}]`)),
      ];
    }),
  );
}
