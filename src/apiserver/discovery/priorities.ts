/** The order of groups and versions in `/apis`, by which kubectl chooses among kinds of the same name. */

/** The priorities in the spec of an APIService; the highest comes first. */
interface ApiPriority {
  readonly groupPriorityMinimum: number;
  readonly versionPriority: number;
}

/** Of built-in groups (`controlplane/apiserver/aggregator.go`, `cmd/kube-apiserver/app/aggregator.go`). */
const groupPriorities: ReadonlyMap<string, number> = new Map([
  ['', 18_000],
  ['apps', 17_800],
  ['events.k8s.io', 17_750],
  ['authentication.k8s.io', 17_700],
  ['authorization.k8s.io', 17_600],
  ['autoscaling', 17_500],
  ['batch', 17_400],
  ['certificates.k8s.io', 17_300],
  ['networking.k8s.io', 17_200],
  ['policy', 17_100],
  ['rbac.authorization.k8s.io', 17_000],
  ['storage.k8s.io', 16_800],
  ['admissionregistration.k8s.io', 16_700],
  ['apiextensions.k8s.io', 16_700],
  ['scheduling.k8s.io', 16_600],
  ['coordination.k8s.io', 16_500],
  ['node.k8s.io', 16_300],
  ['discovery.k8s.io', 16_200],
  ['flowcontrol.apiserver.k8s.io', 16_100],
  // From openshift-apiserver-operator.
  ['route.openshift.io', 9900],
]);

/** Built-in group versions that do not have the {@link builtInVersionPriority}. */
const versionPriorities: ReadonlyMap<string, number> = new Map([
  ['/v1', 1],
  ['autoscaling/v2', 30],
  ['flowcontrol.apiserver.k8s.io/v1', 21],
]);
const builtInVersionPriority = 15;

/** Of custom resources' group versions (`crdregistration_controller.go`). */
export const customPriority: ApiPriority = { groupPriorityMinimum: 1000, versionPriority: 100 };

/** kube-aggregator's own group, which comes first and has no APIService. */
export const aggregatorGroup = 'apiregistration.k8s.io';

/** The priorities of a built-in group version. */
export function builtInPriority(group: string, version: string): ApiPriority {
  return {
    groupPriorityMinimum: groupPriorities.get(group) ?? customPriority.groupPriorityMinimum,
    versionPriority: versionPriorities.get(`${group}/${version}`) ?? builtInVersionPriority,
  };
}

/**
 * By priority, then by name.
 *
 * @param remote the priorities of groups of extension API servers.
 */
export function compareGroups(a: string, b: string, remote: ReadonlyMap<string, number>): number {
  return rank(b, remote) - rank(a, remote) || (a < b ? -1 : a > b ? 1 : 0);
}

function rank(group: string, remote: ReadonlyMap<string, number>): number {
  if (group === aggregatorGroup) return Infinity;
  return groupPriorities.get(group) ?? remote.get(group) ?? customPriority.groupPriorityMinimum;
}
