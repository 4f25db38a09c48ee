import type { PolicyRule } from '../../objects/types/rbac.generated.ts';

/** Verbs, groups (`core` for the one without a name), resources and names of resources, each in their order. */
export type Row = readonly [verbs: string, groups: string, resources: string, names?: string];

/** The rule to write Events. */
export const eventWriters: Row = ['create patch update', 'core events.k8s.io', 'events'];
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

export interface BootstrapRole {
  readonly name: string;
  /** Absent: a ClusterRole. */
  readonly namespace?: string;
  readonly rules: readonly PolicyRule[];
  /** Roles with this label are part of it. */
  readonly aggregates?: string;
  /** The label by which it is part of another role. */
  readonly partOf?: string;
}

export interface BootstrapBinding {
  /** Of the binding and, unless `role` differs, of the role. */
  readonly name: string;
  readonly role?: string;
  /** The namespace of the binding and of the role; absent: both are cluster-scoped. */
  readonly namespace?: string;
  readonly groups?: readonly string[];
  readonly users?: readonly string[];
  /** Service accounts of kube-system. */
  readonly accounts?: readonly string[];
}
