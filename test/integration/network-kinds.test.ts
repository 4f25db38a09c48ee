import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonRecord } from '../../src/objects/json.ts';
import { listAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { makeNamespace } from '../support/api-operations.ts';
import { call } from '../support/test-server.ts';

let server: TestServer;
let namespace = '';
beforeAll(async () => {
  server = await startApiServer({ platform: 'openshift' });
  namespace = await makeNamespace(server, 'network-kinds');
});
afterAll(async () => server.stop());

const cloud = 'cloud.network.openshift.io/v1/cloudprivateipconfigs';
const firewalls = 'k8s.ovn.org/v1/egressfirewalls';
const egressIPs = 'k8s.ovn.org/v1/egressips';
const qos = 'k8s.ovn.org/v1/egressqoses';
const routers = 'network.operator.openshift.io/v1/egressrouters';
const pools = 'whereabouts.cni.cncf.io/v1alpha1/ippools';
const reservations = 'whereabouts.cni.cncf.io/v1alpha1/overlappingrangeipreservations';
const attachments = 'k8s.cni.cncf.io/v1/network-attachment-definitions';
const checks = 'controlplane.operator.openshift.io/v1alpha1/podnetworkconnectivitychecks';

const clusterScoped = [cloud, egressIPs];

/** The list of a kind: in the test's namespace, if it has one. */
function pathOf(kind: string): string {
  const [group = '', version = '', plural = ''] = kind.split('/');
  const place = clusterScoped.includes(kind) ? '' : `namespaces/${namespace}/`;
  return `/apis/${group}/${version}/${place}${plural}`;
}

const names = new Map([
  [cloud, 'CloudPrivateIPConfig'],
  [firewalls, 'EgressFirewall'],
  [egressIPs, 'EgressIP'],
  [qos, 'EgressQoS'],
  [routers, 'EgressRouter'],
  [pools, 'IPPool'],
  [reservations, 'OverlappingRangeIPReservation'],
  [attachments, 'NetworkAttachmentDefinition'],
  [checks, 'PodNetworkConnectivityCheck'],
]);

function whole(kind: string, object: JsonRecord, name = 'default'): JsonRecord {
  const apiVersion = kind.slice(0, kind.lastIndexOf('/'));
  return { apiVersion, kind: names.get(kind), metadata: { name }, ...object };
}

/** Asks for a creation with strict validation; nothing is stored. */
async function creation(kind: string, object: JsonRecord, name?: string) {
  const body = whole(kind, object, name);
  const query = { dryRun: 'All', fieldValidation: 'Strict' };
  return call(server.client, 'POST', pathOf(kind), { body, query });
}

const kinds: readonly (readonly [kind: string, status: boolean, shortName: string, columns: string])[] = [
  [cloud, true, '', 'Name, Age'],
  [firewalls, false, '', 'Name, EgressFirewall Status'],
  [egressIPs, false, 'eip', 'Name, EgressIPs, Assigned Node, Assigned EgressIPs'],
  [qos, true, '', 'Name, Status'],
  [routers, true, '', 'Name, Condition, Status'],
  [pools, false, '', 'Name, Age'],
  [reservations, false, '', 'Name, Age'],
  [attachments, false, 'net-attach-def', 'Name, Age'],
  [checks, true, '', 'Name, Target Endpoint, Reachable, Since'],
];

test.each(kinds)(
  '%s is served with its scope, names, /status and columns',
  async (kind, status, short, columns) => {
    const [group = '', version = '', plural = ''] = kind.split('/');
    const { body } = await call(server.client, 'GET', `/apis/${group}/${version}`);
    const resources = listAt(body, 'resources');
    const resource = resources.find((each) => textAt(each, 'name') === plural);
    expect(resource).toMatchObject({ kind: names.get(kind), namespaced: !clusterScoped.includes(kind) });
    expect(listAt(resource, 'shortNames')).toEqual(short === '' ? [] : [short]);
    expect(resources.some((each) => textAt(each, 'name') === `${plural}/status`)).toBe(status);
    const headers = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };
    const table = await call(server.client, 'GET', `/apis/${kind}`, { headers });
    const shown = listAt(table.body, 'columnDefinitions').map((column) => textAt(column, 'name'));
    expect(shown.join(', ')).toBe(columns);
  },
);

test('the platform kubernetes has none of their groups', async () => {
  const plain = await startApiServer();
  try {
    const { body } = await call(plain.client, 'GET', '/apis');
    const groups = listAt(body, 'groups').map((group) => textAt(group, 'name'));
    expect(groups).toContain('networking.k8s.io');
    expect(groups.filter((group) => /openshift|ovn|cncf/.test(group))).toEqual([]);
  } finally {
    await plain.stop();
  }
});

const egress = (...rules: readonly JsonRecord[]): JsonRecord => ({ spec: { egress: rules } });
const rule = (change: JsonRecord = {}): JsonRecord =>
  egress({ type: 'Deny', to: { cidrSelector: '0.0.0.0/0' }, ...change });
const router = (change: JsonRecord = {}): JsonRecord => ({
  spec: { addresses: [{ ip: '192.0.2.5/24' }], redirect: {}, ...change },
});
const redirect = (change: JsonRecord): JsonRecord =>
  router({
    redirect: { redirectRules: [{ destinationIP: '192.0.2.9', port: 80, protocol: 'TCP', ...change }] },
  });
const check = (change: JsonRecord = {}): JsonRecord => ({
  spec: { sourcePod: 'web-0', targetEndpoint: '10.0.0.1:80', ...change },
});
const expanded = 'fc00.f853.0ccd.e793.0000.0000.0000.0054';

describe('accepted', () => {
  const cases: readonly (readonly [what: string, kind: string, object: JsonRecord, name?: string])[] = [
    ['an IPv4 address as a name', cloud, { spec: { node: 'a' } }, '192.0.2.1'],
    ['an IPv6 address in full', cloud, { spec: {} }, expanded],
    ['no rule', firewalls, egress()],
    [
      'a CIDR with host bits, and what is none',
      firewalls,
      rule({ to: { cidrSelector: '10.0.0.1/8 or so' } }),
    ],
    ['AllowAll', firewalls, rule({ type: 'AllowAll' })],
    ['NotDeny', firewalls, rule({ type: 'NotDeny' })],
    ['protocol xUDPx', firewalls, rule({ ports: [{ port: 1, protocol: 'xUDPx' }] })],
    [
      'TCPx and xSCTP',
      firewalls,
      rule({
        ports: [
          { port: 65535, protocol: 'TCPx' },
          { port: 1, protocol: 'xSCTP' },
        ],
      }),
    ],
    ['a wildcard name', firewalls, rule({ to: { dnsName: '*.example.com.' } })],
    ['a selector of all Nodes', firewalls, rule({ to: { nodeSelector: {} } })],
    [
      'a selector that does not parse',
      firewalls,
      rule({ to: { nodeSelector: { matchExpressions: [{ key: '!', operator: 'Like' }] } } }),
    ],
    [
      'what is no address',
      egressIPs,
      { spec: { egressIPs: ['192.0.2.1/24', 'x'], namespaceSelector: {} } },
      'a',
    ],
    ['no address', egressIPs, { spec: { egressIPs: [], namespaceSelector: {} } }, 'a'],
    ['no spec of QoS', qos, {}],
    ['dscp 0 and 63', qos, egress({ dscp: 0, podSelector: {} }, { dscp: 63, dstCIDR: '2001:db8::/64' })],
    ['a router with its defaults', routers, router(), 'a'],
    ['an address that is none', routers, router({ addresses: [{ ip: 'x' }] }), 'a'],
    [
      'a gateway of each family',
      routers,
      router({
        addresses: [
          { ip: 'x', gateway: '::1' },
          { ip: 'y', gateway: '192.0.2.1' },
        ],
      }),
      'a',
    ],
    ['no address of a router', routers, router({ addresses: [] }), 'a'],
    ['a redirection', routers, redirect({ targetPort: 65535, destinationIP: '2001:db8::1' }), 'a'],
    [
      'a pool',
      pools,
      { spec: { range: 'x', allocations: { 1: { id: 'a', podref: 'b/c', ifname: 'net1' } } } },
      '10.0.0.0-24',
    ],
    ['a pool without a spec', pools, {}, 'a'],
    ['a reservation', reservations, { spec: { podref: 'b/c' } }, '10.0.0.1'],
    ['a configuration that is no JSON', attachments, { spec: { config: '{' } }, 'a'],
    ['no configuration', attachments, {}, 'a'],
    ['a check', checks, check({ tlsClientCert: { name: 'a' } }), 'a'],
    ['a check of a name without a port', checks, check({ targetEndpoint: '[::1]:' }), 'a'],
  ];
  for (const [what, kind, object, name] of cases) {
    test(what, async () => {
      expect(await creation(kind, object, name)).toMatchObject({ status: 201 });
    });
  }

  test('a router has defaults', async () => {
    const { body } = await creation(routers, router(), 'a');
    expect(body['spec']).toMatchObject({
      mode: 'Redirect',
      networkInterface: { macvlan: { mode: 'Bridge' } },
    });
  });
});

describe('refused', () => {
  const cases: readonly (readonly [field: string, kind: string, object: JsonRecord, name?: string])[] = [
    ['spec', cloud, {}, '192.0.2.1'],
    ['metadata.name', cloud, { spec: {} }, 'fc00--54'],
    ['metadata.name', cloud, { spec: {} }, '192.0.2.256'],
    ['spec', firewalls, {}],
    ['spec.egress', firewalls, { spec: {} }],
    ['metadata.name', firewalls, rule(), 'other'],
    ['spec.egress[0].to', firewalls, rule({ to: {} })],
    ['spec.egress[0].to', firewalls, rule({ to: { dnsName: 'a', cidrSelector: '0.0.0.0/0' } })],
    ['spec.egress[0].to.dnsName', firewalls, rule({ to: { dnsName: 'a b' } })],
    ['spec.egress[0].to.dnsName', firewalls, rule({ to: { dnsName: 'a.*.b' } })],
    ['spec.egress[0].type', firewalls, rule({ type: 'allow' })],
    ['spec.egress[0].ports[0].protocol', firewalls, rule({ ports: [{ port: 1, protocol: 'xTCP' }] })],
    ['spec.egress[0].ports[0].port', firewalls, rule({ ports: [{ port: 0, protocol: 'TCP' }] })],
    ['spec.egress[0].ports[0].port', firewalls, rule({ ports: [{ port: 65536, protocol: 'TCP' }] })],
    ['spec.egress[0].ports[0].protocol', firewalls, rule({ ports: [{ port: 1 }] })],
    ['spec.egressIPs', egressIPs, { spec: { namespaceSelector: {} } }, 'a'],
    ['spec.namespaceSelector', egressIPs, { spec: { egressIPs: [] } }, 'a'],
    [
      'status.items[0].node',
      egressIPs,
      { spec: { egressIPs: [], namespaceSelector: {} }, status: { items: [{ egressIP: 'a' }] } },
      'a',
    ],
    ['metadata.name', qos, egress(), 'other'],
    ['spec.egress[0].dscp', qos, egress({})],
    ['spec.egress[0].dscp', qos, egress({ dscp: 64 })],
    ['spec.egress[0].dscp', qos, egress({ dscp: -1 })],
    ['spec.egress[0].dstCIDR', qos, egress({ dscp: 1, dstCIDR: '10.0.0.1' })],
    ['spec.redirect', routers, router({ redirect: null }), 'a'],
    ['spec.addresses', routers, { spec: { redirect: {} } }, 'a'],
    ['spec.addresses[0].ip', routers, router({ addresses: [{}] }), 'a'],
    ['spec.addresses[0].gateway', routers, router({ addresses: [{ ip: 'x', gateway: 'x' }] }), 'a'],
    ['spec.mode', routers, router({ mode: 'Proxy' }), 'a'],
    [
      'spec.networkInterface.macvlan.mode',
      routers,
      router({ networkInterface: { macvlan: { mode: 'VLAN' } } }),
      'a',
    ],
    ['spec.redirect.fallbackIP', routers, router({ redirect: { fallbackIP: 'example.com' } }), 'a'],
    ['spec.redirect.redirectRules[0].targetPort', routers, redirect({ targetPort: 0 }), 'a'],
    ['spec.redirect.redirectRules[0].protocol', routers, redirect({ protocol: 'ICMP' }), 'a'],
    ['spec.redirect.redirectRules[0].destinationIP', routers, redirect({ destinationIP: 'x' }), 'a'],
    ['spec.range', pools, { spec: { allocations: {} } }, 'a'],
    ['spec.allocations', pools, { spec: { range: '10.0.0.0/24' } }, 'a'],
    ['spec.allocations.1.podref', pools, { spec: { range: 'x', allocations: { 1: { id: 'a' } } } }, 'a'],
    ['spec.podref', reservations, { spec: {} }, 'a'],
    ['spec', reservations, {}, 'a'],
    ['spec.config', attachments, { spec: { config: {} } }, 'a'],
    ['spec.sourcePod', checks, check({ sourcePod: 'Web' }), 'a'],
    ['spec.targetEndpoint', checks, check({ targetEndpoint: '10.0.0.1' }), 'a'],
    ['spec.targetEndpoint', checks, check({ targetEndpoint: '10.0.0.1:http' }), 'a'],
    ['spec.tlsClientCert.name', checks, check({ tlsClientCert: {} }), 'a'],
  ];
  for (const [field, kind, object, name] of cases) {
    test(`${field} of ${kind}: ${JSON.stringify(object)}`, async () => {
      const { status, body } = await creation(kind, object, name);
      expect(status).toBe(422);
      expect(listAt(body, 'details', 'causes').map((cause) => textAt(cause, 'field'))).toContain(field);
    });
  }

  test('a field that no definition has', async () => {
    const { status, body } = await creation(attachments, { spec: { configuration: '{}' } }, 'a');
    expect([status, textAt(body, 'message')]).toEqual([
      400,
      'NetworkAttachmentDefinition in version "v1" cannot be handled as a NetworkAttachmentDefinition: strict decoding error: unknown field "spec.configuration"',
    ]);
  });
});

test('the status holds the fields of later releases', async () => {
  const condition = {
    ...{ type: 'Ready-In-Zone-global', status: 'True', reason: 'SetupSucceeded', message: '' },
    lastTransitionTime: '2026-11-23T00:00:00Z',
  };
  const status = { status: 'EgressQoS Rules applied', conditions: [condition] };
  await call(server.client, 'POST', pathOf(qos), { body: whole(qos, egress()) });
  const written = await call(server.client, 'PATCH', `${pathOf(qos)}/default/status`, {
    body: { status },
    contentType: 'application/merge-patch+json',
  });
  expect(written.body['status']).toEqual(status);
  // Without /status, it is a field that any client writes.
  const firewall = {
    status: 'EgressFirewall Rules applied',
    messages: ['global: EgressFirewall Rules applied'],
  };
  const body = whole(firewalls, { ...rule(), status: firewall });
  expect((await call(server.client, 'POST', pathOf(firewalls), { body })).body['status']).toEqual(firewall);
});
