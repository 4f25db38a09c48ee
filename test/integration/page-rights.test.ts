import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { Transport } from '../../src/client/transport.ts';
import { hasMetadata, type KubeObject } from '../../src/objects/meta.ts';
import { parseRecord, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { applyStrictly } from '../support/manifests.ts';
import { askAsPage, startPage } from '../support/page.ts';
import { type Grant, grantsOf, textsAt } from '../support/role-rules.ts';
import { call } from '../support/test-server.ts';

/** The rights of docs/page.md, and what is missing without each. */

let server: TestServer;
const markdown = await readFile(new URL('../../docs/page.md', import.meta.url), 'utf8');
const [, yaml = ''] = /```yaml\n(apiVersion: rbac[^`]*)```/.exec(markdown) ?? [];
const role: unknown = parse(yaml);
if (!hasMetadata(role)) throw new Error('docs/page.md has no role');
const own: KubeObject = role;

beforeAll(async () => {
  server = await startApiServer({ authorizationMode: 'RBAC', controllers: [], nodes: 0 });
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: own.metadata.name };
  const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'viewer' }];
  await applyStrictly(server.client, [
    own,
    Object.assign(
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name: 'viewer' },
      },
      { roleRef, subjects },
    ),
  ]);
});
afterAll(async () => server.stop());

/** Sends as another user. */
function as(user: string): Transport {
  const headers = { 'impersonate-user': user };
  return {
    server: server.client.server,
    request: (method, path, options) =>
      server.client.request(method, path, { ...options, headers: { ...options?.headers, ...headers } }),
    stream: (path, options) =>
      server.client.stream(path, { ...options, headers: { ...options?.headers, ...headers } }),
    close: () => Promise.resolve(),
  };
}

interface Seen {
  readonly forbidden: readonly string[];
  /** Statuses of answers. */
  readonly answers: Readonly<Record<string, number>>;
  readonly proxyOptions: readonly string[];
  /** The sentence where who reaches whom is not known. */
  readonly noReach: string;
}

async function look(user: string, onlyNamespace?: string): Promise<Seen> {
  const page = await startPage(as(user), onlyNamespace === undefined ? {} : { onlyNamespace });
  try {
    const state = await askAsPage(page.port, 'GET', '/data/state?view=map');
    const trace = await askAsPage(page.port, 'POST', '/data/trace', {
      from: 'outside',
      to: 'svc/default/kubernetes:443',
    });
    const pools = await askAsPage(page.port, 'GET', '/data/pools');
    const object = await askAsPage(
      page.port,
      'GET',
      '/data/object?kind=Service&namespace=default&name=kubernetes',
    );
    const reach = await askAsPage(page.port, 'GET', '/data/reach?namespace=default');
    return {
      noReach: reach.status === 200 ? '' : textAt(parseRecord(reach.text), 'message'),
      forbidden: textsAt(recordAt(parseRecord(state.text), 'status'), 'forbidden'),
      answers: { state: state.status, trace: trace.status, pools: pools.status, object: object.status },
      proxyOptions: textsAt(parseRecord(trace.text), 'proxyOptions'),
    };
  } finally {
    await page.close();
  }
}

const all = { state: 200, trace: 200, pools: 200, object: 200 };

test('the role is enough', async () => {
  const seen = await look('viewer');
  expect(seen).toMatchObject({ forbidden: [], answers: all });
  expect(seen.proxyOptions.join()).not.toContain('may not be read');
});

const kinds: Readonly<Record<string, string>> = {
  ...{ services: 'Service', pods: 'Pod', nodes: 'Node', namespaces: 'Namespace', events: 'Event' },
  ...{ networkpolicies: 'NetworkPolicy', ingresses: 'Ingress', ingressclasses: 'IngressClass' },
  ...{
    servicecidrs: 'ServiceCIDR',
    ipaddresses: 'IPAddress',
    endpointslices: 'EndpointSlice',
    leases: 'Lease',
  },
  ...{ addresspools: 'AddressPool', egressips: 'EgressIP', egressfirewalls: 'EgressFirewall' },
  ...{
    egressqoses: 'EgressQoS',
    'network-attachment-definitions': 'NetworkAttachmentDefinition',
    routes: 'Route',
  },
  ...{ gatewayclasses: 'GatewayClass', gateways: 'Gateway', listenersets: 'ListenerSet' },
  ...{ httproutes: 'HTTPRoute', grpcroutes: 'GRPCRoute', tlsroutes: 'TLSRoute' },
  referencegrants: 'ReferenceGrant',
};

/**
 * All rights with `RIGHTS=each`, else those whose lack shows in ways of their own, and of each API group the watch of one
 * kind: that every kind is named, one who may read nothing shows.
 */
function takenAway(grants: readonly Grant[]): readonly Grant[] {
  if (process.env['RIGHTS'] === 'each') return grants;
  const own = ['get services', 'list services', 'get configmaps', 'watch pods'];
  const watched = grants
    .filter(({ verb }) => verb === 'watch')
    .map((grant) => [grant.name.split('.').slice(1).join('.'), grant] as const);
  return [...grants.filter(({ name }) => own.includes(name)), ...new Map(watched).values()];
}

describe('without a right', () => {
  test.each(takenAway(grantsOf([own])))(
    '"$name" what it gives is missing by name, and the rest is there',
    async ({ name, verb, without }) => {
      await applyStrictly(server.client, [without]);
      try {
        const { forbidden, answers, proxyOptions, noReach } = await look('viewer');
        const [, resource = ''] = name.split(' ');
        const [plural = ''] = resource.split('.');
        if (resource === 'configmaps') {
          expect(proxyOptions.join()).toContain("kube-proxy's ConfigMap may not be read");
          expect({ forbidden, answers }).toEqual({ forbidden: [], answers: all });
        } else if (verb === 'get') {
          expect({ forbidden, answers }).toEqual({
            forbidden: [],
            answers: { ...all, object: plural === 'services' ? 403 : 200 },
          });
        } else {
          // Of a server that streams them, lists come by a watch.
          expect(forbidden).toEqual(verb === 'watch' ? [kinds[plural]] : []);
          expect(answers).toMatchObject({ state: 200, pools: 200, object: 200 });
          const isNeeded = ['pods', 'namespaces', 'networkpolicies', 'egressfirewalls'].includes(plural);
          expect(noReach).toContain(verb === 'watch' && isNeeded ? `${kinds[plural] ?? ''}: may not` : '');
          // A Service that is not known cannot be traced.
          expect([200, 400]).toContain(answers['trace']);
        }
      } finally {
        await applyStrictly(server.client, [own]);
      }
    },
  );
});

test('who may read nothing sees which kinds, and no error', async () => {
  const { forbidden, answers } = await look('stranger');
  expect(forbidden).toEqual(expect.arrayContaining(Object.values(kinds)));
  expect(answers).toMatchObject({ state: 200, pools: 200, object: 403 });
});

test('rights in one namespace are enough for a page of that', async () => {
  const verbs = ['get', 'list', 'watch'];
  const rules = [{ apiGroups: ['*'], resources: ['*'], verbs }];
  const group = 'rbac.authorization.k8s.io';
  const namespaced = `/apis/${group}/v1/namespaces/default`;
  const roleRef = { apiGroup: group, kind: 'Role', name: 'reader' };
  const subjects = [{ apiGroup: group, kind: 'User', name: 'tenant' }];
  await call(server.client, 'POST', `${namespaced}/roles`, { body: { metadata: { name: 'reader' }, rules } });
  await call(server.client, 'POST', `${namespaced}/rolebindings`, {
    body: { metadata: { name: 'reader' }, roleRef, subjects },
  });
  const { forbidden, answers } = await look('tenant', 'default');
  expect(answers).toMatchObject({ state: 200, object: 200 });
  expect(forbidden).toEqual(expect.arrayContaining(['Node', 'Namespace']));
  expect(forbidden).not.toContain('Service');
  expect(forbidden).not.toContain('Pod');
});

test.each([
  ['viewer', 'no Ingress and no Route has the host'],
  ['stranger', 'Gateways may not be read'],
])('%s asks where a host of nobody leads', async (user, words) => {
  const page = await startPage(as(user));
  try {
    const asked = { from: 'outside', to: 'http://nobody.test/' };
    const { status, text } = await askAsPage(page.port, 'POST', '/data/trace', asked);
    expect([status, text]).toEqual([200, expect.stringContaining(words)]);
  } finally {
    await page.close();
  }
});
