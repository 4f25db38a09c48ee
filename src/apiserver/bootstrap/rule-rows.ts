import type { PolicyRule } from '../../registry/rbac/rbac.ts';

/** Verbs, groups (`core` for the one without a name), resources and names of resources, each in their order. */
export type Row = readonly [verbs: string, groups: string, resources: string, names?: string];

/** Who may write Events. */
export const events: Row = ['create patch update', 'core events.k8s.io', 'events'];
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
