/** The permissions for Routes that OpenShift adds to admin, edit and view (openshift-apiserver, `bootstrappolicy`). */
import { type BootstrapRole, read, ruleOf } from './component-roles.ts';

const aggregateTo = 'rbac.authorization.k8s.io/aggregate-to-';
const group = 'route.openshift.io';
const all = 'create delete deletecollection get list patch update watch';

/** ClusterRoles that are aggregated to those of users. */
export const openshiftRoles: readonly BootstrapRole[] = [
  {
    name: 'system:openshift:aggregate-to-admin',
    partOf: `${aggregateTo}admin`,
    rules: [ruleOf(['update', group, 'routes/status'])],
  },
  {
    name: 'system:openshift:aggregate-to-edit',
    partOf: `${aggregateTo}edit`,
    rules: [ruleOf([all, group, 'routes']), ruleOf(['create', group, 'routes/custom-host'])],
  },
  {
    name: 'system:openshift:aggregate-to-view',
    partOf: `${aggregateTo}view`,
    rules: [ruleOf([read, group, 'routes']), ruleOf([read, group, 'routes/status'])],
  },
];
