import type {
  ClusterRole,
  PolicyRule,
  RoleBinding,
  RoleRef,
  Subject,
} from '../../objects/types/rbac.generated.ts';
import { pushAll } from '../../objects/lists.ts';
import { declarative, type FieldError, invalid, required, notSupported } from '../validation/field-errors.ts';
import { genericStrategy } from '../generic/generic.ts';
import { validateImmutableField } from '../generic/metadata.ts';
import { validateLabelSelector } from '../validation/label-selector.ts';
import { nameIsPathSegment, isDNS1123Subdomain } from '../../objects/names.ts';
import type { Strategy, UserInfo } from '../generic/strategy.ts';

/** The API group of roles and bindings. */
export const rbacGroup = 'rbac.authorization.k8s.io';

/** Refuses to grant permissions that the user of the write does not have. @throws {StatusError} 403 */
export interface GrantChecks {
  /** `resource` is `roles` or `clusterroles`; `old` is undefined for a create. */
  checkRole(
    resource: string,
    role: ClusterRole,
    old: ClusterRole | undefined,
    user: UserInfo | undefined,
  ): void;
  /** `resource` is `rolebindings` or `clusterrolebindings`. */
  checkBinding(
    resource: string,
    binding: RoleBinding,
    old: RoleBinding | undefined,
    user: UserInfo | undefined,
  ): void;
}

/** The rules of Roles, and of ClusterRoles, which may also name paths and aggregate others (`apis/rbac/validation`). */
export function roleStrategy(
  resource: 'roles' | 'clusterroles',
  checks: GrantChecks | undefined,
): Strategy<ClusterRole> {
  const namespaced = resource === 'roles';
  return genericStrategy<ClusterRole>({
    namespaced,
    ...(checks && {
      authorize: (role, old, { user }) => {
        checks.checkRole(resource, role, old, user);
      },
    }),
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
  if ((verbs ?? []).length === 0) errors.push(declarative(required(`${path}.verbs`)));
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

/**
 * The rules of RoleBindings, and of ClusterRoleBindings, which refer to ClusterRoles only (`apis/rbac/v1/defaults.go`,
 * `apis/rbac/validation` ValidateRoleBinding).
 */
export function roleBindingStrategy(
  resource: 'rolebindings' | 'clusterrolebindings',
  checks: GrantChecks | undefined,
): Strategy<RoleBinding> {
  const namespaced = resource === 'rolebindings';
  const kinds = namespaced ? ['Role', 'ClusterRole'] : ['ClusterRole'];
  return genericStrategy<RoleBinding>({
    namespaced,
    ...(checks && {
      authorize: (binding, old, { user }) => {
        checks.checkBinding(resource, binding, old, user);
      },
    }),
    nameRule: nameIsPathSegment,
    allowCreateOnUpdate: true,
    repeatsCreate: 'before',
    setDefaults(binding) {
      const { roleRef } = binding;
      if ((roleRef.apiGroup ?? '') === '') roleRef.apiGroup = rbacGroup;
      for (const subject of binding.subjects ?? []) {
        if ((subject.apiGroup ?? '') !== '' || (subject.kind !== 'User' && subject.kind !== 'Group'))
          continue;
        subject.apiGroup = rbacGroup;
      }
    },
    validateCreate: ({ roleRef, subjects = [] }) => [
      ...validateRoleRef(roleRef, kinds),
      ...subjects.flatMap((subject, i) => validateSubject(subject, namespaced, `subjects[${i}]`)),
    ],
    validateUpdate: ({ roleRef }, old) =>
      validateImmutableField(goRoleRef(roleRef), goRoleRef(old.roleRef), 'roleRef'),
  });
}

/** As Go prints the internal type. */
function goRoleRef({ apiGroup = '', kind, name }: RoleRef): Record<string, string> {
  return { APIGroup: apiGroup, Kind: kind, Name: name };
}

function validateRoleRef({ apiGroup = '', kind, name }: RoleRef, kinds: readonly string[]): FieldError[] {
  const errors: FieldError[] = [];
  if (apiGroup !== rbacGroup) errors.push(notSupported('roleRef.apiGroup', apiGroup, [rbacGroup]));
  if (!kinds.includes(kind)) errors.push(notSupported('roleRef.kind', kind, kinds));
  if (name === '') errors.push(declarative(required('roleRef.name')));
  for (const message of nameIsPathSegment(name, false)) errors.push(invalid('roleRef.name', name, message));
  return errors;
}

function validateSubject(subject: Subject, namespaced: boolean, path: string): FieldError[] {
  const { kind, apiGroup = '', name, namespace = '' } = subject;
  const errors: FieldError[] = [];
  if (name === '') errors.push(declarative(required(`${path}.name`)));
  switch (kind) {
    case 'ServiceAccount':
      if (name !== '') {
        for (const message of isDNS1123Subdomain(name)) errors.push(invalid(`${path}.name`, name, message));
      }
      if (apiGroup !== '') errors.push(notSupported(`${path}.apiGroup`, apiGroup, ['']));
      if (!namespaced && namespace === '') errors.push(required(`${path}.namespace`));
      break;
    case 'User':
    case 'Group':
      if (apiGroup !== rbacGroup) errors.push(notSupported(`${path}.apiGroup`, apiGroup, [rbacGroup]));
      break;
    default:
      errors.push(notSupported(`${path}.kind`, kind, ['Group', 'ServiceAccount', 'User']));
  }
  return errors;
}
