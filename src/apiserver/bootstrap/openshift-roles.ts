/** What OpenShift adds to the roles of users for Routes (openshift-apiserver, `bootstrappolicy`). */
import { type BootstrapRole, ruleOf } from './rule-rows.ts';

const aggregateTo = 'rbac.authorization.k8s.io/aggregate-to-';
const group = 'route.openshift.io';
const read = 'get list watch';
const write = `create delete deletecollection get list patch update watch`;

export const openshiftRoles: readonly BootstrapRole[] = [
  {
    name: 'system:openshift:aggregate-to-admin',
    partOf: `${aggregateTo}admin`,
    rules: [ruleOf(['update', group, 'routes/status'])],
  },
  {
    name: 'system:openshift:aggregate-to-edit',
    partOf: `${aggregateTo}edit`,
    rules: [ruleOf([write, group, 'routes']), ruleOf(['create', group, 'routes/custom-host'])],
  },
  {
    name: 'system:openshift:aggregate-to-view',
    partOf: `${aggregateTo}view`,
    rules: [ruleOf([read, group, 'routes']), ruleOf([read, group, 'routes/status'])],
  },
];
