import type { ClusterRole, PolicyRule } from '../../objects/types/rbac.generated.ts';
import { pushAll } from '../../objects/lists.ts';
import { type FieldError, invalid, required } from '../validation/field-errors.ts';
import { genericStrategy } from '../generic/generic.ts';
import { validateLabelSelector } from '../validation/label-selector.ts';
import { nameIsPathSegment } from '../../objects/names.ts';
import type { Strategy } from '../generic/strategy.ts';

/** The API group of roles and bindings. */
export const rbacGroup = 'rbac.authorization.k8s.io';

/** The rules of Roles (`apis/rbac/validation` ValidateRole). */
export const roleStrategy = strategyOf(true);

/** The rules of ClusterRoles, which may also name paths and aggregate others. */
export const clusterRoleStrategy = strategyOf(false);

function strategyOf(namespaced: boolean): Strategy<ClusterRole> {
  return genericStrategy<ClusterRole>({
    namespaced,
    nameRule: nameIsPathSegment,
    allowCreateOnUpdate: true,
    repeatsCreate: 'before',
    validateCreate({ rules, aggregationRule }) {
      const errors = (rules ?? []).flatMap((rule, i) => validateRule(rule, namespaced, `rules[${i}]`));
      if (aggregationRule === undefined) return errors;
      const path = 'aggregationRule.clusterRoleSelectors';
      const selectors = aggregationRule.clusterRoleSelectors ?? [];
      if (selectors.length === 0) {
        const detail = 'at least one clusterRoleSelector required if aggregationRule is non-nil';
        errors.push(required(path, detail));
      }
      selectors.forEach((selector, i) => pushAll(errors, validateLabelSelector(selector, `${path}[${i}]`)));
      return errors;
    },
  });
}

function validateRule(rule: PolicyRule, namespaced: boolean, path: string): FieldError[] {
  const { verbs, apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule;
  const errors: FieldError[] = [];
  if ((verbs ?? []).length === 0)
    errors.push(required(`${path}.verbs`, 'verbs must contain at least one value'));
  if (nonResourceURLs.length > 0) {
    const wrong = (detail: string) =>
      errors.push(invalid(`${path}.nonResourceURLs`, nonResourceURLs, detail));
    if (namespaced) wrong('namespaced rules cannot apply to non-resource URLs');
    if (apiGroups.length + resources.length + resourceNames.length > 0) {
      wrong('rules cannot apply to both regular resources and non-resource URLs');
    }
    return errors;
  }
  if (apiGroups.length === 0) {
    errors.push(required(`${path}.apiGroups`, 'resource rules must supply at least one api group'));
  }
  if (resources.length === 0) {
    errors.push(required(`${path}.resources`, 'resource rules must supply at least one resource'));
  }
  return errors;
}
