/** Roles and RoleBindings in the system's namespaces (`bootstrappolicy/namespace_policy.go`). */
import {
  type BootstrapBinding,
  type BootstrapRole,
  eventWriters,
  read,
  type Row,
  ruleOf,
} from './rule-rows.ts';

const leaderLocking: readonly Row[] = [
  ['create get list update watch', 'coordination.k8s.io', 'leases'],
  ['create get list update watch', 'coordination.k8s.io', 'leasecandidates'],
];
const reader = 'extension-apiserver-authentication-reader';
const controllerManager = 'system:kube-controller-manager';
const scheduler = 'system:kube-scheduler';

const rows: Readonly<Record<string, Readonly<Record<string, readonly Row[]>>>> = {
  'kube-public': {
    'system:controller:bootstrap-signer': [
      [read, 'core', 'configmaps'],
      ['update', 'core', 'configmaps', 'cluster-info'],
      eventWriters,
    ],
  },
  'kube-system': {
    [reader]: [[read, 'core', 'configmaps', 'extension-apiserver-authentication']],
    'system::leader-locking-kube-controller-manager': leaderLocking,
    'system::leader-locking-kube-scheduler': leaderLocking,
    'system:controller:bootstrap-signer': [[read, 'core', 'secrets']],
    'system:controller:cloud-provider': [['create get list watch', 'core', 'configmaps']],
    'system:controller:token-cleaner': [['delete get list watch', 'core', 'secrets'], eventWriters],
  },
};

/** The roles in kube-public and kube-system. */
export const namespaceRoles: readonly BootstrapRole[] = Object.entries(rows).flatMap(([namespace, roles]) =>
  Object.entries(roles).map(([name, rules]) => ({ name, namespace, rules: rules.map(ruleOf) })),
);

/** Bind the role of a controller to its ServiceAccount. */
const controllerBindings = namespaceRoles
  .filter(({ name }) => name.startsWith('system:controller:'))
  .map(({ name, namespace }) => ({
    name,
    ...(namespace === undefined ? {} : { namespace }),
    accounts: [name.slice('system:controller:'.length)],
  }));

/** The bindings in kube-public and kube-system. */
export const namespaceBindings: readonly BootstrapBinding[] = [
  {
    name: `system::${reader}`,
    role: reader,
    namespace: 'kube-system',
    users: [controllerManager, scheduler],
  },
  {
    name: 'system::leader-locking-kube-controller-manager',
    namespace: 'kube-system',
    users: [controllerManager],
    accounts: ['kube-controller-manager', 'leader-election-controller'],
  },
  {
    name: 'system::leader-locking-kube-scheduler',
    namespace: 'kube-system',
    users: [scheduler],
    accounts: ['kube-scheduler'],
  },
  ...controllerBindings,
];
