import type {
  FlowSchema,
  PolicyRulesWithSubjects,
  Subject,
} from '../../../objects/types/flowcontrol.generated.ts';
import { autoUpdateAnnotation } from '../prioritylevelconfiguration/bootstrap.ts';

/** Every request. */
const everything: Omit<PolicyRulesWithSubjects, 'subjects'> = {
  resourceRules: [
    { verbs: ['*'], apiGroups: ['*'], resources: ['*'], clusterScope: true, namespaces: ['*'] },
  ],
  nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
};
const leases = { apiGroups: ['coordination.k8s.io'], resources: ['leases'], namespaces: ['*'] };
const allUsers = [group('system:unauthenticated'), group('system:authenticated')];
const nodes = [group('system:nodes')];
const controllerManager = user('system:kube-controller-manager');
const scheduler = user('system:kube-scheduler');
const systemAccounts: Subject = {
  kind: 'ServiceAccount',
  serviceAccount: { name: '*', namespace: 'kube-system' },
};

/** The mandatory objects (apiserver `apis/flowcontrol/bootstrap`): their specs are fixed. */
export const mandatoryFlowSchemas: readonly FlowSchema[] = [
  schema('exempt', 'exempt', 1, undefined, { subjects: [group('system:masters')], ...everything }),
  schema('catch-all', 'catch-all', 10_000, 'ByUser', { subjects: allUsers, ...everything }),
];

/** The suggested objects of a new cluster. */
export const suggestedFlowSchemas: readonly FlowSchema[] = [
  schema('system-nodes', 'system', 500, 'ByUser', { subjects: nodes, ...everything }),
  schema('system-node-high', 'node-high', 400, 'ByUser', {
    subjects: nodes,
    resourceRules: [
      {
        ...{ verbs: ['*'], apiGroups: [''], resources: ['nodes', 'nodes/status'] },
        ...{ clusterScope: true, namespaces: ['*'] },
      },
      { verbs: ['*'], ...leases },
    ],
  }),
  schema('probes', 'exempt', 2, undefined, {
    subjects: allUsers,
    nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/healthz', '/readyz', '/livez'] }],
  }),
  schema('system-leader-election', 'leader-election', 100, 'ByUser', {
    subjects: [controllerManager, scheduler, systemAccounts],
    resourceRules: [{ verbs: ['get', 'create', 'update'], ...leases }],
  }),
  schema('kube-controller-manager', 'workload-high', 800, 'ByNamespace', {
    subjects: [controllerManager],
    ...everything,
  }),
  schema('kube-scheduler', 'workload-high', 800, 'ByNamespace', { subjects: [scheduler], ...everything }),
  schema('kube-system-service-accounts', 'workload-high', 900, 'ByNamespace', {
    subjects: [systemAccounts],
    ...everything,
  }),
  schema('service-accounts', 'workload-low', 9000, 'ByUser', {
    subjects: [group('system:serviceaccounts')],
    ...everything,
  }),
  schema('global-default', 'global-default', 9900, 'ByUser', { subjects: allUsers, ...everything }),
];

function group(name: string): Subject {
  return { kind: 'Group', group: { name } };
}

function user(name: string): Subject {
  return { kind: 'User', user: { name } };
}

function schema(
  name: string,
  level: string,
  matchingPrecedence: number,
  distinguisher: string | undefined,
  rule: PolicyRulesWithSubjects,
): FlowSchema {
  return {
    metadata: { name, annotations: { [autoUpdateAnnotation]: 'true' } },
    spec: {
      priorityLevelConfiguration: { name: level },
      matchingPrecedence,
      ...(distinguisher === undefined ? {} : { distinguisherMethod: { type: distinguisher } }),
      rules: [rule],
    },
    status: {},
  };
}
