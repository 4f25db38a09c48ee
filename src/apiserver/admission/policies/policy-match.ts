import type {
  MatchResources,
  NamedRuleWithOperations,
} from '../../../objects/admissionregistration.generated.ts';
import { compileLabelSelector } from '../../../objects/labels.ts';

import type { AdmissionAttributes } from '../../rest/admission.ts';
import type { ServedResource } from '../../rest/served-resource.ts';
import type { ServerCore } from '../../rest/server-core.ts';
import { type Matching, matchRules, matchSelectors } from '../webhooks/matching.ts';

/**
 * The resource as which `matchConstraints` or `matchResources` match a request (apiserver
 * `admission/plugin/policy/matching`); undefined when they do not. Without rules of its own a binding matches
 * everything.
 */
export function matchResources(
  core: ServerCore,
  match: MatchResources,
  attributes: AdmissionAttributes,
): ServedResource | undefined {
  const common = {
    matchesEquivalents: match.matchPolicy !== 'Exact',
    namespaceSelector: compileLabelSelector(match.namespaceSelector ?? {}),
    objectSelector: compileLabelSelector(match.objectSelector ?? {}),
  };
  const matching = (rules: readonly NamedRuleWithOperations[]): Matching => ({
    ...common,
    rules: rules.filter(({ resourceNames }) => isNamed(resourceNames ?? [], attributes.name)),
  });
  const excluded = matching(match.excludeResourceRules ?? []);
  if (excluded.rules.length > 0 && matchRules(core, excluded, attributes) !== undefined) return undefined;
  const rules = match.resourceRules ?? [];
  const resource = rules.length === 0 ? attributes.resource : matchRules(core, matching(rules), attributes);
  return resource !== undefined && matchSelectors(core, matching(rules), attributes) ? resource : undefined;
}

function isNamed(names: readonly string[], name: string): boolean {
  return names.length === 0 || names.includes(name);
}
