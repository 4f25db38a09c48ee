import type { PolicyRule } from '../../objects/types/rbac.generated.ts';

/** A policy rule: verbs, API groups (`core` for ""), resources and resource names, each separated by spaces. */
export type Row = readonly [verbs: string, groups: string, resources: string, names?: string];

/** The rule to write Events. */
export const eventWriters: Row = ['create patch update', 'core events.k8s.io', 'events'];
/** The verbs of a reader. */
export const read = 'get list watch';

/** The rule of a row. */
export function ruleOf([verbs, groups, resources, names]: Row): PolicyRule {
  return {
    verbs: verbs.split(' '),
    apiGroups: groups.split(' ').map((group) => (group === 'core' ? '' : group)),
    resources: resources.split(' '),
    ...(names === undefined ? {} : { resourceNames: names.split(' ') }),
  };
}

/** A default Role or ClusterRole. */
export interface BootstrapRole {
  readonly name: string;
  /** Absent for a ClusterRole. */
  readonly namespace?: string;
  readonly rules: readonly PolicyRule[];
  /** The label of the roles that are aggregated to this one. */
  readonly aggregates?: string;
  /** The label by which this role is aggregated to another one. */
  readonly partOf?: string;
}

/** A default RoleBinding or ClusterRoleBinding. */
export interface BootstrapBinding {
  readonly name: string;
  /** The name of the role; absent where it is that of the binding. */
  readonly role?: string;
  /** The namespace of the binding and the role; absent where both are cluster-scoped. */
  readonly namespace?: string;
  readonly groups?: readonly string[];
  readonly users?: readonly string[];
  /** ServiceAccounts in kube-system. */
  readonly accounts?: readonly string[];
}
