import { policyRules } from '../../network/policy/network-policy.ts';
import { matchesLabels, renderLabelSelector } from '../../objects/labels/labels.ts';
import { keyOf } from '../../objects/meta.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import type { NetworkPolicy } from '../../objects/types/networking.generated.ts';
import type { PolicyRow } from './rows.ts';

/** @param within the Pods of its namespace; undefined: they are not known. */
export function policyRow(policy: NetworkPolicy, within: readonly Pod[] | undefined): PolicyRow {
  const { podSelector, ingress, egress } = policyRules(policy);
  const { namespace = '', name = '', creationTimestamp = '' } = policy.metadata;
  const isIdle = within?.some(({ metadata }) => matchesLabels(podSelector, metadata.labels ?? {})) === false;
  return {
    ...{ key: keyOf(policy), namespace, name },
    selector: podSelector === 'nothing' ? 'nothing' : renderLabelSelector(podSelector),
    isolates: [
      ...(ingress === undefined ? [] : [{ direction: 'ingress', rules: ingress.length } as const]),
      ...(egress === undefined ? [] : [{ direction: 'egress', rules: egress.length } as const]),
    ],
    ...(isIdle
      ? {
          trouble: {
            reason: 'SelectorMatchesNothing',
            message: 'no Pod of its namespace has the labels of its podSelector',
          },
        }
      : {}),
    created: creationTimestamp,
  };
}
