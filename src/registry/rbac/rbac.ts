import type { KubeObject, LabelSelector } from '../../objects/meta.ts';

/** The API group of roles and bindings. */
export const rbacGroup = 'rbac.authorization.k8s.io';

/** Rbac.authorization.k8s.io/v1 Role, and ClusterRole, which may also aggregate others. */
export interface Role extends KubeObject {
  rules?: PolicyRule[] | null;
  aggregationRule?: { clusterRoleSelectors?: LabelSelector[] };
}

export interface PolicyRule {
  verbs?: string[] | null;
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
  nonResourceURLs?: string[];
}

/** Rbac.authorization.k8s.io/v1 RoleBinding and ClusterRoleBinding. */
export interface RoleBinding extends KubeObject {
  subjects?: Subject[];
  roleRef?: RoleRef;
}

export interface Subject {
  kind?: string;
  apiGroup?: string;
  name?: string;
  namespace?: string;
}

export interface RoleRef {
  apiGroup?: string;
  kind?: string;
  name?: string;
}
