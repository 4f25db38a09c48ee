/**
 * The roles that every cluster with RBAC has from the start, and who has them: those of
 * `plugin/pkg/auth/authorizer/rbac/bootstrappolicy` but for nodes, the scheduler and kube-controller-manager itself.
 */
import type { PolicyRule } from '../../registry/rbac/rbac.ts';
import { controllerBindings, controllerRoles } from './controller-roles.ts';

export interface BootstrapRole {
  readonly name: string;
  readonly rules: readonly PolicyRule[];
  /** Roles with this label are part of it. */
  readonly aggregates?: string;
  /** The label by which it is part of another role. */
  readonly partOf?: string;
}

export interface BootstrapBinding {
  /** Of the binding and of the role. */
  readonly name: string;
  readonly groups?: readonly string[];
  readonly users?: readonly string[];
  /** Service accounts of kube-system. */
  readonly accounts?: readonly string[];
}

const read = ['get', 'list', 'watch'];
const readUpdate = ['get', 'list', 'patch', 'update', 'watch'];
const certificates = 'certificates.k8s.io';
const write = ['create', 'delete', 'deletecollection', 'patch', 'update'];
const all = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

function rule(group: string, resources: readonly string[], verbs: readonly string[]): PolicyRule {
  return { verbs: [...verbs], apiGroups: [group], resources: [...resources] };
}

function paths(urls: readonly string[]): PolicyRule {
  return { verbs: ['get'], nonResourceURLs: [...urls] };
}

const events: PolicyRule = {
  verbs: ['create', 'patch', 'update'],
  apiGroups: ['', 'events.k8s.io'],
  resources: ['events'],
};

const toAdmin = 'rbac.authorization.k8s.io/aggregate-to-admin';
const toEdit = 'rbac.authorization.k8s.io/aggregate-to-edit';
const toView = 'rbac.authorization.k8s.io/aggregate-to-view';

export const bootstrapRoles: readonly BootstrapRole[] = [
  {
    name: 'cluster-admin',
    rules: [rule('*', ['*'], ['*']), { verbs: ['*'], nonResourceURLs: ['*'] }],
  },
  { name: 'admin', rules: [], aggregates: toAdmin },
  { name: 'edit', rules: [], aggregates: toEdit, partOf: toAdmin },
  { name: 'view', rules: [], aggregates: toView, partOf: toEdit },
  {
    name: 'system:aggregate-to-admin',
    partOf: toAdmin,
    rules: [
      rule('authorization.k8s.io', ['localsubjectaccessreviews'], ['create']),
      rule('rbac.authorization.k8s.io', ['rolebindings', 'roles'], all),
    ],
  },
  {
    name: 'system:aggregate-to-edit',
    partOf: toEdit,
    rules: [
      rule(
        '',
        ['pods/attach', 'pods/exec', 'pods/portforward', 'pods/proxy', 'secrets', 'services/proxy'],
        read,
      ),
      rule('', ['serviceaccounts'], ['impersonate']),
      rule('', ['pods', 'pods/attach', 'pods/exec', 'pods/portforward', 'pods/proxy'], write),
      rule('', ['pods/eviction'], ['create']),
      rule(
        '',
        [
          'configmaps',
          'events',
          'persistentvolumeclaims',
          'replicationcontrollers',
          'replicationcontrollers/scale',
          'secrets',
          'serviceaccounts',
          'services',
          'services/proxy',
        ],
        write,
      ),
      rule('', ['serviceaccounts/token'], ['create']),
      rule(
        'apps',
        [
          'daemonsets',
          'deployments',
          'deployments/rollback',
          'deployments/scale',
          'replicasets',
          'replicasets/scale',
          'statefulsets',
          'statefulsets/scale',
        ],
        write,
      ),
      rule('autoscaling', ['horizontalpodautoscalers'], write),
      rule('batch', ['cronjobs', 'jobs'], write),
      rule(
        'extensions',
        [
          'daemonsets',
          'deployments',
          'deployments/rollback',
          'deployments/scale',
          'ingresses',
          'networkpolicies',
          'replicasets',
          'replicasets/scale',
          'replicationcontrollers/scale',
        ],
        write,
      ),
      rule('policy', ['poddisruptionbudgets'], write),
      rule('networking.k8s.io', ['ingresses', 'networkpolicies'], write),
      rule('coordination.k8s.io', ['leases'], all),
    ],
  },
  {
    name: 'system:aggregate-to-view',
    partOf: toView,
    rules: [
      rule(
        '',
        [
          'configmaps',
          'endpoints',
          'persistentvolumeclaims',
          'persistentvolumeclaims/status',
          'pods',
          'replicationcontrollers',
          'replicationcontrollers/scale',
          'serviceaccounts',
          'services',
          'services/status',
        ],
        read,
      ),
      rule(
        '',
        [
          'bindings',
          'events',
          'limitranges',
          'namespaces/status',
          'pods/log',
          'pods/status',
          'replicationcontrollers/status',
          'resourcequotas',
          'resourcequotas/status',
        ],
        read,
      ),
      rule('', ['namespaces'], read),
      rule('discovery.k8s.io', ['endpointslices'], read),
      rule(
        'apps',
        [
          'controllerrevisions',
          'daemonsets',
          'daemonsets/status',
          'deployments',
          'deployments/scale',
          'deployments/status',
          'replicasets',
          'replicasets/scale',
          'replicasets/status',
          'statefulsets',
          'statefulsets/scale',
          'statefulsets/status',
        ],
        read,
      ),
      rule('autoscaling', ['horizontalpodautoscalers', 'horizontalpodautoscalers/status'], read),
      rule('batch', ['cronjobs', 'cronjobs/status', 'jobs', 'jobs/status'], read),
      rule(
        'extensions',
        [
          'daemonsets',
          'daemonsets/status',
          'deployments',
          'deployments/scale',
          'deployments/status',
          'ingresses',
          'ingresses/status',
          'networkpolicies',
          'replicasets',
          'replicasets/scale',
          'replicasets/status',
          'replicationcontrollers/scale',
        ],
        read,
      ),
      rule('policy', ['poddisruptionbudgets', 'poddisruptionbudgets/status'], read),
      rule('networking.k8s.io', ['ingresses', 'ingresses/status', 'networkpolicies'], read),
    ],
  },
  {
    name: 'system:discovery',
    rules: [
      paths([
        '/api',
        '/api/*',
        '/apis',
        '/apis/*',
        '/healthz',
        '/livez',
        '/openapi',
        '/openapi/*',
        '/readyz',
        '/version',
        '/version/',
      ]),
    ],
  },
  {
    name: 'system:basic-user',
    rules: [
      rule('authorization.k8s.io', ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'], ['create']),
      rule('authentication.k8s.io', ['selfsubjectreviews'], ['create']),
    ],
  },
  {
    name: 'system:public-info-viewer',
    rules: [paths(['/healthz', '/livez', '/readyz', '/version', '/version/'])],
  },
  {
    name: 'system:monitoring',
    rules: [
      paths([
        '/healthz',
        '/healthz/*',
        '/livez',
        '/livez/*',
        '/metrics',
        '/metrics/slis',
        '/readyz',
        '/readyz/*',
      ]),
    ],
  },
  {
    name: 'system:auth-delegator',
    rules: [
      rule('authentication.k8s.io', ['tokenreviews'], ['create']),
      rule('authorization.k8s.io', ['subjectaccessreviews'], ['create']),
    ],
  },
  {
    name: 'system:kube-dns',
    rules: [rule('', ['endpoints', 'services'], ['list', 'watch'])],
  },
  {
    name: 'system:node-proxier',
    rules: [
      rule('', ['endpoints', 'services'], ['list', 'watch']),
      rule('', ['nodes'], read),
      events,
      rule('discovery.k8s.io', ['endpointslices'], ['list', 'watch']),
      rule('networking.k8s.io', ['servicecidrs'], ['list', 'watch']),
    ],
  },
  {
    name: 'system:kube-aggregator',
    rules: [rule('', ['endpoints', 'services'], read)],
  },
  {
    name: 'system:kubelet-api-admin',
    rules: [
      rule('', ['nodes'], read),
      rule('', ['nodes'], ['proxy']),
      rule('', ['nodes/log', 'nodes/metrics', 'nodes/proxy', 'nodes/spec', 'nodes/stats'], ['*']),
    ],
  },
  {
    name: 'system:node-bootstrapper',
    rules: [rule(certificates, ['certificatesigningrequests'], ['create', ...read])],
  },
  {
    name: 'system:node-problem-detector',
    rules: [rule('', ['nodes'], ['get']), rule('', ['nodes/status'], ['patch']), events],
  },
  {
    name: 'system:persistent-volume-provisioner',
    rules: [
      rule('', ['persistentvolumes'], ['create', 'delete', ...read]),
      rule('', ['persistentvolumeclaims'], ['get', 'list', 'update', 'watch']),
      rule('storage.k8s.io', ['storageclasses'], read),
      rule('', ['events'], ['watch']),
      events,
    ],
  },
  {
    name: 'system:volume-scheduler',
    rules: [
      rule('', ['persistentvolumes'], readUpdate),
      rule('storage.k8s.io', ['storageclasses'], read),
      rule('', ['persistentvolumeclaims'], readUpdate),
    ],
  },
  {
    name: 'system:service-account-issuer-discovery',
    rules: [paths(['/.well-known/openid-configuration', '/openid/v1/jwks'])],
  },
  ...['nodeclient', 'selfnodeclient'].map((part) => ({
    name: `system:certificates.k8s.io:certificatesigningrequests:${part}`,
    rules: [rule(certificates, [`certificatesigningrequests/${part}`], ['create'])],
  })),
  ...['kube-apiserver-client', 'kube-apiserver-client-kubelet', 'kubelet-serving', 'legacy-unknown'].map(
    (signer) => ({
      name: `system:certificates.k8s.io:${signer}-approver`,
      rules: [
        { ...rule(certificates, ['signers'], ['approve']), resourceNames: [`kubernetes.io/${signer}`] },
      ],
    }),
  ),
  ...controllerRoles,
];

const authenticated = 'system:authenticated';

export const bootstrapBindings: readonly BootstrapBinding[] = [
  { name: 'cluster-admin', groups: ['system:masters'] },
  { name: 'system:discovery', groups: [authenticated] },
  { name: 'system:basic-user', groups: [authenticated] },
  { name: 'system:public-info-viewer', groups: [authenticated, 'system:unauthenticated'] },
  { name: 'system:monitoring', groups: ['system:monitoring'] },
  { name: 'system:kube-dns', accounts: ['kube-dns'] },
  { name: 'system:node-proxier', users: ['system:kube-proxy'] },
  { name: 'system:volume-scheduler', users: ['system:kube-scheduler'] },
  { name: 'system:service-account-issuer-discovery', groups: ['system:serviceaccounts'] },
  ...controllerBindings,
];
