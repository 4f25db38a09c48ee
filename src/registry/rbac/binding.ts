import type { RoleBinding, RoleRef, Subject } from '../../objects/types/rbac.generated.ts';
import { jsonEqual } from '../../objects/json.ts';
import { type FieldError, invalid, notSupported, required } from '../validation/field-errors.ts';
import { genericStrategy } from '../generic/generic.ts';
import { isDNS1123Subdomain, nameIsPathSegment } from '../../objects/names.ts';
import type { Strategy } from '../generic/strategy.ts';
import { rbacGroup } from './role.ts';

/** The rules of RoleBindings (`apis/rbac/v1/defaults.go`, `apis/rbac/validation` ValidateRoleBinding). */
export const roleBindingStrategy = strategyOf(true);

/** The rules of ClusterRoleBindings, which refer to ClusterRoles only. */
export const clusterRoleBindingStrategy = strategyOf(false);

function strategyOf(namespaced: boolean): Strategy<RoleBinding> {
  const kinds = namespaced ? ['Role', 'ClusterRole'] : ['ClusterRole'];
  return genericStrategy<RoleBinding>({
    namespaced,
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
      jsonEqual(roleRef, old.roleRef)
        ? []
        : [invalid('roleRef', goRoleRef(roleRef), 'cannot change roleRef')],
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
  if (name === '') errors.push(required('roleRef.name'));
  for (const message of nameIsPathSegment(name, false)) errors.push(invalid('roleRef.name', name, message));
  return errors;
}

function validateSubject(subject: Subject, namespaced: boolean, path: string): FieldError[] {
  const { kind, apiGroup = '', name, namespace = '' } = subject;
  const errors: FieldError[] = [];
  if (name === '') errors.push(required(`${path}.name`));
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
