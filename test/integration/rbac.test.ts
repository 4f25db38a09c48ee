import { execFile, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { at, listAt, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { type Answer, call } from '../support/test-server.ts';

const run = promisify(execFile);
const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0;
const rbac = '/apis/rbac.authorization.k8s.io/v1';

let server: TestServer;
let directory = '';
beforeAll(async () => {
  server = await startApiServer({ authorizationMode: 'RBAC' });
  directory = fs.mkdtempSync(path.join(os.tmpdir(), 'servicenet-rbac-'));
  fs.writeFileSync(path.join(directory, 'kubeconfig'), server.kubeconfig);
});
afterAll(async () => {
  await server.stop();
  fs.rmSync(directory, { recursive: true });
});

async function send(method: string, url: string, body?: unknown, as?: string): Promise<Answer> {
  return call(server.client, method, url, {
    body,
    ...(as === undefined ? {} : { headers: { 'impersonate-user': as } }),
  });
}

async function kubectl(...args: string[]): Promise<string> {
  try {
    const { stdout } = await run('kubectl', [
      '--kubeconfig',
      path.join(directory, 'kubeconfig'),
      '--cache-dir',
      directory,
      ...args,
    ]);
    return stdout.trim();
  } catch (error) {
    return textAt(error, 'stdout').trim();
  }
}

async function bind(user: string, role: string, namespace?: string): Promise<void> {
  const url =
    namespace === undefined ? `${rbac}/clusterrolebindings` : `${rbac}/namespaces/${namespace}/rolebindings`;
  const { status } = await send('POST', url, {
    metadata: { name: `${user}-${role}` },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [{ kind: 'User', name: user }],
  });
  expect(status).toBe(201);
}

/** Waits until the aggregated role has, or has not, a rule about a resource. */
async function untilAggregated(role: string, resource: string, expected: boolean): Promise<void> {
  for (;;) {
    const { body } = await send('GET', `${rbac}/clusterroles/${role}`);
    if (listAt(body, 'rules').some((rule) => listAt(rule, 'resources').includes(resource)) === expected)
      return;
  }
}

describe('a cluster with RBAC', () => {
  test('starts with roles that take their rules from others', async () => {
    const { body } = await send('GET', `${rbac}/clusterroles/view`);
    expect(at(body, 'metadata', 'labels')).toEqual({
      'kubernetes.io/bootstrapping': 'rbac-defaults',
      'rbac.authorization.k8s.io/aggregate-to-edit': 'true',
    });
    const counts = await Promise.all(
      ['view', 'edit', 'admin'].map(
        async (name) => listAt((await send('GET', `${rbac}/clusterroles/${name}`)).body, 'rules').length,
      ),
    );
    const [view = 0, edit = 0, admin = 0] = counts;
    expect(view).toBeGreaterThan(5);
    expect(edit).toBeGreaterThan(view);
    expect(admin).toBeGreaterThan(edit);
  });

  test('starts with roles for its components, in the namespaces of the system too', async () => {
    const system = `${rbac}/namespaces/kube-system`;
    const reader = await send('GET', `${system}/roles/extension-apiserver-authentication-reader`);
    expect(reader.body).toMatchObject({
      metadata: {
        labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults' },
        annotations: { 'rbac.authorization.kubernetes.io/autoupdate': 'true' },
      },
      rules: [
        {
          verbs: ['get', 'list', 'watch'],
          apiGroups: [''],
          resources: ['configmaps'],
          resourceNames: ['extension-apiserver-authentication'],
        },
      ],
    });
    const locking = await send('GET', `${system}/rolebindings/system::leader-locking-kube-scheduler`);
    expect(locking.body).toMatchObject({
      roleRef: { kind: 'Role', name: 'system::leader-locking-kube-scheduler' },
      subjects: [
        { kind: 'User', name: 'system:kube-scheduler' },
        { kind: 'ServiceAccount', name: 'kube-scheduler', namespace: 'kube-system' },
      ],
    });
    const nodes = await send('GET', `${rbac}/clusterrolebindings/system:node`);
    expect(nodes.body).not.toHaveProperty('subjects');
    const lists = await Promise.all(
      ['kube-public', 'kube-system'].map((namespace) => send('GET', `${rbac}/namespaces/${namespace}/roles`)),
    );
    expect(lists.map(({ body }) => listAt(body, 'items').length)).toEqual([1, 6]);
  });

  test('lets components do what they do, each in its place', async () => {
    const lease = (namespace: string) => `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
    const list = (path: string, as: string) => send('GET', path, undefined, as);
    expect((await list(lease('kube-system'), 'system:kube-controller-manager')).status).toBe(200);
    expect(
      (await list(lease('kube-system'), 'system:serviceaccount:kube-system:kube-scheduler')).status,
    ).toBe(200);
    expect((await list(lease('default'), 'system:serviceaccount:kube-system:kube-scheduler')).status).toBe(
      403,
    );
    expect((await list('/api/v1/pods', 'system:kube-scheduler')).status).toBe(200);
    expect((await list('/api/v1/secrets', 'system:kube-scheduler')).status).toBe(403);
    expect(
      (
        await list(
          '/api/v1/namespaces/kube-system/secrets',
          'system:serviceaccount:kube-system:token-cleaner',
        )
      ).status,
    ).toBe(200);
  });

  test('adds the rules of a labelled role to those that aggregate it, and takes them away again', async () => {
    const metadata = { name: 'more', labels: { 'rbac.authorization.k8s.io/aggregate-to-view': 'true' } };
    await send('POST', `${rbac}/clusterroles`, {
      metadata,
      rules: [{ verbs: ['get'], apiGroups: ['example.com'], resources: ['widgets'] }],
    });
    await untilAggregated('admin', 'widgets', true);
    await send('DELETE', `${rbac}/clusterroles/more`);
    await untilAggregated('admin', 'widgets', false);
  });

  test('lets anonymous users see the version, and authenticated ones discover the rest', async () => {
    expect((await send('GET', '/version', undefined, 'system:anonymous')).status).toBe(200);
    expect((await send('GET', '/apis', undefined, 'system:anonymous')).status).toBe(403);
    expect((await send('GET', '/apis', undefined, 'jane')).status).toBe(200);
  });

  test('says who may do what, and by what', async () => {
    await bind('viewer', 'view', 'default');
    const spec = {
      user: 'viewer',
      resourceAttributes: { verb: 'get', resource: 'services', namespace: 'default' },
    };
    const reviews = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
    expect((await send('POST', reviews, { spec })).body['status']).toEqual({
      allowed: true,
      reason: 'RBAC: allowed by RoleBinding "viewer-view/default" of ClusterRole "view" to User "viewer"',
    });
    const secrets = { ...spec, resourceAttributes: { ...spec.resourceAttributes, resource: 'secrets' } };
    expect((await send('POST', reviews, { spec: secrets })).body['status']).toEqual({ allowed: false });
  });

  const requirement = (operator: string, ...values: string[]) => ({ key: 'a', operator, values });
  test.each([
    [
      { fieldSelector: { rawSelector: 'a=b,c!=d' }, labelSelector: { rawSelector: 'a in (b),!c' } },
      undefined,
    ],
    [{ fieldSelector: { requirements: [requirement('In', 'b'), requirement('NotIn', 'b')] } }, undefined],
    [{ labelSelector: { requirements: [requirement('Exists'), requirement('NotIn', 'b', 'c')] } }, undefined],
    [
      { fieldSelector: { rawSelector: 'a in b' }, labelSelector: { rawSelector: '&' } },
      'spec.resourceAttributes.fieldSelector ignored due to parse error; ' +
        'spec.resourceAttributes.labelSelector ignored due to parse error',
    ],
    [
      {
        fieldSelector: {
          requirements: [requirement('In', 'b'), requirement('Exists'), requirement('In', 'b', 'c')],
        },
      },
      'spec.resourceAttributes.fieldSelector partially ignored due to parse error',
    ],
    [
      { labelSelector: { requirements: [requirement('Exists', 'b'), requirement('Like', 'b')] } },
      'spec.resourceAttributes.labelSelector ignored due to parse error',
    ],
  ])('reads the selectors %j of a review', async (selectors, evaluationError) => {
    const resourceAttributes = { verb: 'list', resource: 'pods', namespace: 'default', ...selectors };
    const { body } = await send('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', {
      spec: { user: 'nobody', resourceAttributes },
    });
    expect(body['status']).toEqual({
      allowed: false,
      ...(evaluationError === undefined ? {} : { evaluationError }),
    });
  });

  const authorization = '/apis/authorization.k8s.io/v1';
  const pods = { verb: 'get', resource: 'pods', namespace: 'default' };
  const refusedReviews: [string, object, string][] = [
    [
      'subjectaccessreviews',
      { spec: {} },
      '[spec: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must ' +
        'be specified, spec.user: Invalid value: "": at least one of user or group must be specified]',
    ],
    [
      'selfsubjectaccessreviews',
      { metadata: { name: 'x' }, spec: { resourceAttributes: pods, nonResourceAttributes: { verb: 'get' } } },
      '[spec: Invalid value: {"Path":"","Verb":"get"}: exactly one of nonResourceAttributes or resourceAttributes ' +
        'must be specified, metadata: Invalid value: {"name":"x"}: must be empty]',
    ],
    [
      'namespaces/default/localsubjectaccessreviews',
      { spec: { user: 'a', resourceAttributes: { ...pods, namespace: 'other' } } },
      'spec.resourceAttributes.namespace: Invalid value: "other": must match metadata.namespace',
    ],
    [
      'namespaces/default/localsubjectaccessreviews',
      {
        metadata: { labels: { a: 'b' } },
        spec: { user: 'a', nonResourceAttributes: { path: '/x', verb: 'get' } },
      },
      '[metadata: Invalid value: {"namespace":"default","labels":{"a":"b"}}: must be empty except for namespace, ' +
        'spec.nonResourceAttributes: Invalid value: {"Path":"/x","Verb":"get"}: disallowed on this kind of request]',
    ],
    [
      'selfsubjectaccessreviews',
      { spec: { resourceAttributes: { ...pods, fieldSelector: {} } } },
      'spec.resourceAttributes.fieldSelector.requirements: Required value: when spec.resourceAttributes.fieldSelector ' +
        'is specified, requirements or rawSelector is required',
    ],
  ];

  test.each(refusedReviews)('refuses %s %j', async (plural, body, why) => {
    const answer = await send('POST', `${authorization}/${plural}`, body);
    expect(answer.status).toBe(422);
    expect(answer.body['message']).toBe(`.authorization.k8s.io "" is invalid: ${why}`);
  });

  test('answers a review of rules without its question, and only of a namespace', async () => {
    const url = `${authorization}/selfsubjectrulesreviews`;
    const answer = await send('POST', url, { spec: { namespace: 'default' } });
    expect(answer.status).toBe(201);
    expect(answer.body['spec']).toEqual({});
    const refused = await send('POST', url, { spec: {} });
    expect([refused.status, refused.body['message']]).toEqual([400, 'no namespace on request']);
  });

  test('reports a binding to a missing role', async () => {
    await bind('lost', 'nowhere');
    expect((await send('GET', '/api/v1/services', undefined, 'lost')).body['message']).toBe(
      'services is forbidden: User "lost" cannot list resource "services" in API group "" at the cluster scope: ' +
        'RBAC: clusterrole.rbac.authorization.k8s.io "nowhere" not found',
    );
  });
});

describe('who may make roles', () => {
  const roles = `${rbac}/namespaces/default/roles`;
  const role = (name: string, resources: string[], verbs: string[]) => ({
    metadata: { name },
    rules: [{ apiGroups: [''], resources, verbs }],
  });

  test('may not grant more than they have', async () => {
    await bind('owner', 'admin', 'default');
    expect((await send('POST', roles, role('fine', ['services'], ['get']), 'owner')).status).toBe(201);
    const { status, body } = await send(
      'POST',
      roles,
      role('more', ['services', 'nodes'], ['get', 'delete']),
      'owner',
    );
    expect(status).toBe(403);
    expect(body['message']).toBe(
      'roles.rbac.authorization.k8s.io "more" is forbidden: user "owner" (groups=["system:authenticated"]) is attempting to ' +
        'grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["nodes"], Verbs:["get" "delete"]}',
    );
    expect((await send('PUT', `${roles}/fine`, role('fine', ['nodes'], ['get']), 'owner')).status).toBe(403);
    expect(
      (
        await send(
          'PUT',
          `${roles}/fine`,
          { ...role('fine', ['services'], ['get']), metadata: { name: 'fine', labels: { a: 'b' } } },
          'owner',
        )
      ).status,
    ).toBe(200);
  });

  test('may not bind what they do not have', async () => {
    const binding = (name: string, kind: string) => ({
      metadata: { name: `x-${name}` },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name },
      subjects: [{ kind: 'User', name: 'friend' }],
    });
    const url = `${rbac}/namespaces/default/rolebindings`;
    expect((await send('POST', url, binding('edit', 'ClusterRole'), 'owner')).status).toBe(201);
    const refused = await send('POST', url, binding('cluster-admin', 'ClusterRole'), 'owner');
    expect(refused.status).toBe(403);
    expect(refused.body['message']).toContain(
      '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}\n{NonResourceURLs:["*"], Verbs:["*"]}',
    );
    expect((await send('POST', url, binding('nowhere', 'Role'), 'owner')).status).toBe(404);
  });

  test('may, if they have the right to escalate or to bind', async () => {
    await send('POST', `${rbac}/clusterroles`, {
      metadata: { name: 'escalator' },
      rules: [
        {
          apiGroups: ['rbac.authorization.k8s.io'],
          resources: ['roles', 'rolebindings', 'clusterroles'],
          verbs: ['*'],
        },
      ],
    });
    await bind('climber', 'escalator');
    expect((await send('POST', roles, role('climbed', ['nodes'], ['*']), 'climber')).status).toBe(201);
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' };
    const binding = { metadata: { name: 'climbed' }, roleRef, subjects: [{ kind: 'User', name: 'climber' }] };
    expect((await send('POST', `${rbac}/namespaces/default/rolebindings`, binding, 'climber')).status).toBe(
      201,
    );
  });
});

describe('who may change objects, but make none', () => {
  const leases = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
  const configMaps = '/api/v1/namespaces/default/configmaps';
  const lease = { metadata: { name: 'new' } };
  const apply = (as: string) =>
    call(server.client, 'PATCH', `${configMaps}/new?fieldManager=m`, {
      body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'new' } },
      headers: { 'content-type': 'application/apply-patch+yaml', 'impersonate-user': as },
    });
  const rules = (...verbs: string[]) => [
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs },
    { apiGroups: [''], resources: ['configmaps'], verbs },
  ];

  test('makes none by an update or an apply either', async () => {
    await send('POST', `${rbac}/clusterroles`, {
      metadata: { name: 'changer' },
      rules: rules('update', 'patch'),
    });
    await bind('changer', 'changer');
    const put = await send('PUT', `${leases}/new`, lease, 'changer');
    expect([put.status, put.body['message']]).toEqual([
      403,
      'leases.coordination.k8s.io "new" is forbidden: ',
    ]);
    const applied = await apply('changer');
    expect([applied.status, applied.body['message']]).toEqual([403, 'configmaps "new" is forbidden: ']);
    expect((await send('GET', `${leases}/new`)).status).toBe(404);
    expect((await send('GET', `${configMaps}/new`)).status).toBe(404);
  });

  test('makes them with the right to create, and changes them without', async () => {
    const all = rules('update', 'patch', 'create');
    await send('POST', `${rbac}/clusterroles`, { metadata: { name: 'maker' }, rules: all });
    await bind('maker', 'maker');
    expect((await send('PUT', `${leases}/new`, lease, 'maker')).status).toBe(201);
    expect((await apply('maker')).status).toBe(201);
    expect((await apply('changer')).status).toBe(200);
  });
});

describe('who may change roles that are there', () => {
  const clusterRoles = `${rbac}/clusterroles`;
  const merge = { 'content-type': 'application/merge-patch+json' };
  const patch = (url: string, body: unknown, as: string) =>
    call(server.client, 'PATCH', url, { body, headers: { ...merge, 'impersonate-user': as } });

  test('may not have the rules of a role given to another one by a label', async () => {
    const rules = [
      { apiGroups: ['rbac.authorization.k8s.io'], resources: ['*'], verbs: ['update', 'patch', 'get'] },
    ];
    await send('POST', clusterRoles, { metadata: { name: 'labeller' }, rules });
    await bind('labeller', 'labeller');
    const labels = { 'rbac.authorization.k8s.io/aggregate-to-view': 'true' };
    const url = `${clusterRoles}/cluster-admin`;
    const { status, body } = await patch(url, { metadata: { labels } }, 'labeller');
    expect(status).toBe(403);
    expect(body['message']).toBe(
      'clusterroles.rbac.authorization.k8s.io "cluster-admin" is forbidden: user "labeller" (groups=["system:authenticated"]) is ' +
        'attempting to grant RBAC permissions not currently held:\n{APIGroups:["*"], Resources:["*"], Verbs:["*"]}\n' +
        '{NonResourceURLs:["*"], Verbs:["*"]}',
    );
    expect((await patch(url, { metadata: { annotations: { a: 'b' } } }, 'labeller')).status).toBe(403);
    const binding = `${rbac}/clusterrolebindings/cluster-admin`;
    expect((await patch(binding, { metadata: { labels: { a: 'b' } } }, 'labeller')).status).toBe(403);
    expect((await send('GET', url)).body).not.toHaveProperty(['metadata', 'annotations', 'a']);
  });

  test('may do what the garbage collector has to', async () => {
    await send('POST', clusterRoles, {
      metadata: { name: 'kept', finalizers: ['example.com/a'] },
      rules: [{ apiGroups: [''], resources: ['nodes'], verbs: ['*'] }],
    });
    const url = `${clusterRoles}/kept`;
    const { status, body } = await patch(url, { metadata: { finalizers: null } }, 'labeller');
    expect([status, at(body, 'metadata', 'finalizers')]).toEqual([200, undefined]);
    await send('DELETE', url);
  });

  test('may not take from a role that aggregates, unless they have everything', async () => {
    await send('POST', clusterRoles, {
      metadata: { name: 'sum' },
      aggregationRule: { clusterRoleSelectors: [{ matchLabels: { nobody: 'has' } }] },
    });
    for (const change of [{ aggregationRule: null }, { metadata: { labels: { a: 'b' } } }]) {
      const { status, body } = await patch(`${clusterRoles}/sum`, change, 'labeller');
      expect([status, body['message']]).toEqual([
        403,
        'clusterroles.rbac.authorization.k8s.io "sum" is forbidden: must have cluster-admin privileges to use the ' +
          'aggregationRule',
      ]);
    }
  });

  test('may escalate a role by its name where the path has one', async () => {
    const rules = [
      { apiGroups: ['rbac.authorization.k8s.io'], resources: ['clusterroles'], verbs: ['create', 'update'] },
      {
        apiGroups: ['rbac.authorization.k8s.io'],
        resources: ['clusterroles'],
        verbs: ['escalate'],
        resourceNames: ['named'],
      },
    ];
    await send('POST', clusterRoles, { metadata: { name: 'one' }, rules });
    await bind('one', 'one');
    const role = {
      metadata: { name: 'named' },
      rules: [{ apiGroups: [''], resources: ['nodes'], verbs: ['*'] }],
    };
    expect((await send('POST', clusterRoles, role, 'one')).status).toBe(403);
    expect((await send('POST', clusterRoles, { ...role, rules: [] }, 'one')).status).toBe(201);
    expect((await send('PUT', `${clusterRoles}/named`, role, 'one')).status).toBe(200);
  });
});

describe.runIf(hasKubectl)('kubectl auth', () => {
  test('can-i', async () => {
    await bind('reader', 'view', 'default');
    const cani = async (...args: string[]) => kubectl('auth', 'can-i', ...args, '--as', 'reader');
    expect(await cani('list', 'services', '-n', 'default')).toBe('yes');
    expect(await cani('delete', 'services', '-n', 'default')).toBe('no');
    expect(await cani('list', 'services', '-n', 'kube-system')).toBe('no');
    expect(await cani('get', '/version')).toBe('yes');
    expect(await kubectl('auth', 'can-i', '*', '*')).toBe('yes');
  });

  test('can-i --list', async () => {
    const rows = (await kubectl('auth', 'can-i', '--list', '-n', 'default', '--as', 'reader'))
      .split('\n')
      .map((row) => row.replace(/ {2,}/g, ' | '));
    expect(rows[0]).toBe('Resources | Non-Resource URLs | Resource Names | Verbs');
    expect(rows).toContain('services | [] | [] | [get list watch]');
    expect(rows).toContain('selfsubjectreviews.authentication.k8s.io | [] | [] | [create]');
    expect(rows).toContain(' | [/version] | [] | [get]');
    expect(rows.some((row) => row.startsWith('secrets '))).toBe(false);
  });

  test('whoami', async () => {
    expect(JSON.parse(await kubectl('auth', 'whoami', '-o', 'json'))).toMatchObject({
      status: {
        userInfo: { username: 'kubernetes-admin', groups: ['system:masters', 'system:authenticated'] },
      },
    });
  });
});

// pkg/serviceaccount/claims.go
describe('a token of a ServiceAccount that others ask about', () => {
  const core = '/api/v1/namespaces/default';

  async function reviewed(boundObjectRef: object): Promise<unknown> {
    const authentication = { apiVersion: 'authentication.k8s.io/v1' };
    const { body } = await send('POST', `${core}/serviceaccounts/default/token`, {
      ...{ ...authentication, kind: 'TokenRequest', spec: { boundObjectRef } },
    });
    const spec = { token: textAt(body, 'status', 'token') };
    const review = { ...authentication, kind: 'TokenReview', spec };
    const { status, body: said } = await send('POST', '/apis/authentication.k8s.io/v1/tokenreviews', review);
    expect(status, JSON.stringify([body, said])).toBe(201);
    return said;
  }

  test('says the Pod, its node, and the group of all who are authenticated', async () => {
    await send('POST', `${core}/serviceaccounts`, { metadata: { name: 'default' } });
    const node = await send('POST', '/api/v1/nodes', { metadata: { name: 'there' } });
    const spec = { serviceAccountName: 'default', containers: [{ name: 'c', image: 'i' }] };
    const uidOf = async (name: string, nodeName: string): Promise<string> => {
      const pod = { metadata: { name }, spec: { ...spec, nodeName } };
      return textAt((await send('POST', `${core}/pods`, pod)).body, 'metadata', 'uid');
    };
    const key = 'authentication.kubernetes.io';
    const groups = ['system:serviceaccounts', 'system:serviceaccounts:default', 'system:authenticated'];
    for (const [name, nodeName, nodeUid] of [
      ['placed', 'there', textAt(node.body, 'metadata', 'uid')],
      ['misplaced', 'gone', undefined],
    ] as const) {
      const uid = await uidOf(name, nodeName);
      const review = await reviewed({ apiVersion: 'v1', kind: 'Pod', name });
      const extra = {
        [`${key}/credential-id`]: [expect.stringMatching(/^JTI=/)],
        [`${key}/pod-name`]: [name],
        [`${key}/pod-uid`]: [uid],
        [`${key}/node-name`]: [nodeName],
        ...(nodeUid === undefined ? {} : { [`${key}/node-uid`]: [nodeUid] }),
      };
      expect(review).toMatchObject({ status: { authenticated: true, user: { groups } } });
      expect(recordAt(review, 'status', 'user', 'extra')).toEqual(extra);
    }
  });
});
