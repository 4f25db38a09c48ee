/**
 * The default roles and bindings of a cluster with RBAC (`plugin/pkg/auth/authorizer/rbac/bootstrappolicy`), without
 * those of features that are off by default.
 */
import type { PolicyRule } from '../../objects/types/rbac.generated.ts';
import type { BootstrapRole, BootstrapBinding } from './component-roles.ts';
import { componentBindings, componentRoles } from './component-roles.ts';
import { controllerBindings, controllerRoles } from './controller-roles.ts';
import { namespaceBindings, namespaceRoles } from './component-roles.ts';
import { allVerbs } from '../../registry/generic/strategy.ts';

const read = ['get', 'list', 'watch'];
const certificates = 'certificates.k8s.io';
const write = ['create', 'delete', 'deletecollection', 'patch', 'update'];

function rule(group: string, resources: readonly string[], verbs: readonly string[]): PolicyRule {
  return { verbs: [...verbs], apiGroups: [group], resources: [...resources] };
}

/** Events of both groups. */
function events(verbs: readonly string[]): PolicyRule {
  return { verbs: [...verbs], apiGroups: ['', 'events.k8s.io'], resources: ['events'] };
}

function paths(urls: readonly string[]): PolicyRule {
  return { verbs: ['get'], nonResourceURLs: [...urls] };
}

const toAdmin = 'rbac.authorization.k8s.io/aggregate-to-admin';
const toEdit = 'rbac.authorization.k8s.io/aggregate-to-edit';
const toView = 'rbac.authorization.k8s.io/aggregate-to-view';

/** The default roles. */
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
      rule('rbac.authorization.k8s.io', ['rolebindings', 'roles'], allVerbs),
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
      events(write),
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
      rule('coordination.k8s.io', ['leases'], allVerbs),
      rule('resource.k8s.io', ['resourceclaims', 'resourceclaimtemplates'], write),
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
      events(read),
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
      rule('resource.k8s.io', ['resourceclaims', 'resourceclaims/status', 'resourceclaimtemplates'], read),
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
        '/flagz',
        '/healthz',
        '/healthz/*',
        '/livez',
        '/livez/*',
        '/metrics',
        '/metrics/slis',
        '/readyz',
        '/readyz/*',
        '/statusz',
      ]),
      rule('', ['nodes/metrics'], ['get']),
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
    name: 'system:service-account-issuer-discovery',
    rules: [
      paths([
        '/.well-known/openid-configuration',
        '/.well-known/openid-configuration/',
        '/openid/v1/jwks',
        '/openid/v1/jwks/',
      ]),
    ],
  },
  ...['nodeclient', 'selfnodeclient'].map((subresource) => ({
    name: `system:certificates.k8s.io:certificatesigningrequests:${subresource}`,
    rules: [rule(certificates, [`certificatesigningrequests/${subresource}`], ['create'])],
  })),
  ...['kube-apiserver-client', 'kube-apiserver-client-kubelet', 'kubelet-serving', 'legacy-unknown'].map(
    (signer) => ({
      name: `system:certificates.k8s.io:${signer}-approver`,
      rules: [
        { ...rule(certificates, ['signers'], ['approve']), resourceNames: [`kubernetes.io/${signer}`] },
      ],
    }),
  ),
  ...componentRoles,
  ...controllerRoles,
  ...namespaceRoles,
];

const authenticated = 'system:authenticated';

/** The default bindings. */
export const bootstrapBindings: readonly BootstrapBinding[] = [
  { name: 'cluster-admin', groups: ['system:masters'] },
  { name: 'system:discovery', groups: [authenticated] },
  { name: 'system:basic-user', groups: [authenticated] },
  { name: 'system:public-info-viewer', groups: [authenticated, 'system:unauthenticated'] },
  { name: 'system:monitoring', groups: ['system:monitoring'] },
  { name: 'system:service-account-issuer-discovery', groups: ['system:serviceaccounts'] },
  ...componentBindings,
  ...controllerBindings,
  ...namespaceBindings,
];
