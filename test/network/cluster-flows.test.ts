import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ExecResult } from '../../src/host/host.ts';
import { endText, type Flow, isFlow, serviceText } from '../../src/network/flows/flow.ts';
import { textAt } from '../../src/objects/json.ts';
import { applyStrictly, kustomizeWith } from '../support/manifests.ts';
import { call } from '../support/test-server.ts';
import { TestCluster } from './support/cluster.ts';
import { missingFor, missingProgram } from './support/gate.ts';
import { ApiRelay, NodeProgram } from './support/node-program.ts';
import { endpointSlice } from './support/objects.ts';

const missing = missingFor('user') || missingProgram('conntrack', 'conntrack');
const main = fileURLToPath(new URL('../../src/main.js', import.meta.url));
const patience = { timeout: 60_000 };
const nodes = ['node-1', 'node-2'] as const;

/** Where Pods are, and in which namespace. A policy isolates `closed`. */
const pods = {
  client: ['node-1', 'shop'],
  web: ['node-2', 'shop'],
  closed: ['node-2', 'shop'],
  vault: ['node-2', 'bank'],
} as const;

/** What `flows` says, in a line. */
function lineOf(flow: Flow): string {
  const { from, to, outcome, decidedBy } = flow;
  const by = [decidedBy?.object, decidedBy?.field].filter((each) => each !== undefined).join(' ');
  return [
    endText(from),
    serviceText(flow) || '-',
    to === undefined ? '-' : endText(to),
    outcome,
    by || '-',
  ].join(' | ');
}

/** The last that was said of each. */
function flowsIn(text: string): readonly string[] {
  const lines = text.split('\n').filter((line) => line.startsWith('{') && line.endsWith('}'));
  const flows = lines.map((line): unknown => JSON.parse(line)).filter(isFlow);
  return [...new Map(flows.map((flow) => [flow.id, flow])).values()].map(lineOf).toSorted();
}

describe.skipIf(missing !== '')(`flows of a cluster${missing === '' ? '' : ` (missing: ${missing})`}`, () => {
  let cluster: TestCluster;
  let outside: ApiRelay;
  const relays = new Map<string, ApiRelay>();
  const agents = new Map<string, NodeProgram>();

  function start(node: string): void {
    const relay = relays.get(node);
    if (relay === undefined) throw new Error(`no relay for ${node}`);
    agents.set(
      node,
      new NodeProgram(
        ...([cluster.network.at(node).machine, relay, node, '--node-name', node] as const),
        ...['--cluster-cidr', '10.244.0.0/16', '--features=proxy,policy'],
        ...['--flows-bind-address', ':10263', '--log-level', 'debug'],
      ),
    );
  }

  beforeAll(async () => {
    cluster = await TestCluster.start(
      { 'node-1': ['client'], 'node-2': ['web', 'closed', 'vault'] },
      { authorizationMode: 'RBAC' },
    );
    await cluster.send('POST', '/api/v1/namespaces', { metadata: { name: 'bank' } });
    const rights = [
      'Namespace',
      'ServiceAccount',
      'ClusterRole',
      'ClusterRoleBinding',
      'Role',
      'RoleBinding',
    ];
    const manifests = kustomizeWith(['agent', 'node', 'policy', 'flows']);
    await applyStrictly(
      cluster.server.client,
      manifests.filter(({ kind = '' }) => rights.includes(kind)),
    );
    const { body } = await call(
      cluster.server.client,
      'POST',
      '/api/v1/namespaces/servicenet-system/serviceaccounts/servicenet-agent/token',
      { body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} } },
    );
    // Agents have the rights of the manifests, and no others.
    const ofAgent = cluster.server.kubeconfig.replace(/(?<= token: ).*/, textAt(body, 'status', 'token'));
    expect(ofAgent).not.toBe(cluster.server.kubeconfig);
    for (const [name, [nodeName, namespace]] of Object.entries(pods)) {
      const { machine, addresses } = cluster.network.at(name);
      await machine.serve(8080);
      const path = `/api/v1/namespaces/${namespace}/pods`;
      const spec = { nodeName, containers: [{ name: 'main', image: 'x' }] };
      await cluster.send('POST', path, { metadata: { name, labels: { app: name } }, spec });
      const podIPs = [{ ip: addresses.IPv4 }];
      const status = { phase: 'Running', podIP: addresses.IPv4, podIPs };
      await cluster.send('PATCH', `${path}/${name}/status`, { status });
    }
    const services = { web: '10.96.3.1', closed: '10.96.3.2' };
    for (const [name, clusterIP] of Object.entries(services)) {
      await cluster.service(name, { clusterIP });
      const address = cluster.network.at(name).addresses.IPv4;
      await cluster.slice(endpointSlice('IPv4', [{ address, node: 'node-2' }], 8080, name));
    }
    await cluster.service('empty', { clusterIP: '10.96.3.3' });
    await cluster.send('POST', '/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies', {
      metadata: { name: 'deny-in' },
      spec: { podSelector: { matchLabels: { app: 'closed' } }, policyTypes: ['Ingress'] },
    });
    for (const node of nodes) {
      relays.set(node, await ApiRelay.open(cluster.network.at(node).machine, ofAgent));
      start(node);
    }
    outside = await ApiRelay.open(cluster.network.outside.machine, cluster.server.kubeconfig);
  });
  afterAll(async () => {
    for (const agent of agents.values()) await agent.signal('TERM');
    for (const relay of [...relays.values(), outside]) await relay.close();
    await cluster.close();
  });

  /** Who answers a connection of the client. */
  async function ask(address: string, port: number): Promise<string> {
    const answer = await cluster.network.at('client').machine.ask(address, port, { timeout: 1000 });
    return typeof answer === 'object' ? answer.name : answer;
  }

  /** `servicenet flows` on a machine that is no node. */
  function flows(
    signal: AbortSignal | undefined,
    output: (text: string) => void,
    ...words: readonly string[]
  ) {
    const { host } = cluster.network.outside.machine;
    return host.exec(process.execPath, [main, 'flows', ...words], {
      output,
      ...(signal === undefined ? {} : { signal }),
    });
  }

  /** One that ends by itself. */
  async function said(...words: readonly string[]): Promise<ExecResult> {
    let stdout = '';
    const result = await flows(
      undefined,
      (text) => void (stdout += text),
      '--kubeconfig',
      outside.kubeconfig,
      ...words,
    );
    return { ...result, stdout };
  }

  /** What flows have left in the kernel of a node, and their programs. */
  async function left(node: string): Promise<readonly string[]> {
    const { host } = cluster.network.at(node).machine;
    const { stdout: tables } = await host.exec('nft', ['list', 'tables']);
    const { stdout: sockets } = await host.exec('cat', ['/proc/net/netlink']);
    // Column 4: the groups of connection tracking.
    const listening = sockets.split('\n').filter((line) => /^\S+\s+12\s+\S+\s+0*7\s/.test(line));
    return [...tables.split('\n').filter((line) => line.includes('servicenet-flows')), ...listening];
  }

  it('are each told once, with who decided, and leave nothing in the kernel', async () => {
    const { client } = cluster.server;
    const published = async (): Promise<number> => {
      const { body } = await call(client, 'GET', '/api/v1/namespaces/servicenet-system/configmaps');
      return JSON.stringify(body).split('"authority"').length - 1;
    };
    await expect.poll(published, patience).toBe(2);
    await expect.poll(() => ask('10.96.3.1', 80), patience).toBe('web');
    await expect.poll(() => ask('10.96.3.2', 80), patience).toBe('silence');
    for (const node of nodes) expect(await left(node)).toEqual([]);
    const viewing = new AbortController();
    let text = '';
    const viewer = flows(
      ...([
        viewing.signal,
        (more: string) => void (text += more),
        '--kubeconfig',
        outside.kubeconfig,
      ] as const),
      ...['-f', '-o', 'json', '-n', 'shop', '--last', '0'],
    ).catch(() => undefined);
    try {
      for (const node of nodes) await expect.poll(() => left(node), patience).toHaveLength(2);
      // Its table is there before the viewer is: what comes in between is known, and not told.
      const told = async (): Promise<string> => {
        expect(await ask('10.96.3.1', 80)).toBe('web');
        return text;
      };
      await expect.poll(told, patience).toContain('"connected"');
      expect(await ask('10.96.3.2', 80)).toBe('silence');
      expect(await ask('10.96.3.3', 80)).toBe('refused');
      const expected = [
        'pod/shop/client | svc/shop/closed:80 | pod/shop/closed | dropped | NetworkPolicy shop/deny-in spec.ingress',
        'pod/shop/client | svc/shop/empty:80 | - | refused | Service shop/empty',
        'pod/shop/client | svc/shop/web:80 | pod/shop/web | connected | -',
      ];
      await expect.poll(() => [...new Set(flowsIn(text))], patience).toEqual(expected);
    } finally {
      viewing.abort(new Error('enough'));
      await viewer;
    }
    for (const node of nodes) await expect.poll(() => left(node), patience).toEqual([]);
    const decided = await said('-n', 'shop', '--by', 'networkpolicy/deny-in', '--last', '1', '-o', 'json');
    const [denied = '', ...others] = flowsIn(decided.stdout);
    expect(denied).toMatch(/ \| pod\/shop\/closed \| dropped \| NetworkPolicy shop\/deny-in spec\.ingress$/);
    expect(others).toEqual([]);
  });

  it('are what a test expects, or it is said that this cannot be known', { timeout: 300_000 }, async () => {
    const expected = async (expect: string, timeout: string) =>
      await said('--expect', expect, '--timeout', timeout);
    const ends = 'pod/shop/client svc/shop/closed:80';
    expect(await expected(`${ends} dropped`, '30s')).toMatchObject({ exitCode: 0 });
    const never = await expected('pod/shop/client svc/shop/empty:80 connected', '20s');
    expect(never, never.stderr).toMatchObject({ exitCode: 1 });
    await agents.get('node-2')?.signal('TERM');
    const unknown = await expected(`${ends} dropped`, '20s');
    expect(unknown.exitCode).toBe(2);
    expect(unknown.stderr).toContain('AgentSilent: node node-2 (192.0.2.12:10263)');
    // What it has counted is there for the next agent, also where the connections to the Service are forgotten by now.
    start('node-2');
    const counted = 'pod/shop/client pod/shop/closed:8080 dropped';
    await expect.poll(async () => (await expected(counted, '20s')).exitCode, { timeout: 180_000 }).toBe(0);
  });

  it('are those of the namespaces that a service account may see, whose token is good for nothing else', async () => {
    const { IPv4 } = cluster.network.at('vault').addresses;
    await cluster.send('POST', '/api/v1/namespaces/shop/serviceaccounts', { metadata: { name: 'viewer' } });
    const subjects = [{ kind: 'ServiceAccount', namespace: 'shop', name: 'viewer' }];
    const rbac = '/apis/rbac.authorization.k8s.io/v1';
    const account = ['--service-account', 'shop/viewer', '-o', 'json', '--outcome', 'connected'];
    expect(await ask('10.96.3.1', 80)).toBe('web');
    expect(await ask(IPv4, 8080)).toBe('vault');
    const refused = await said(...account);
    expect(refused.exitCode).toBe(2);
    expect(refused.stderr).toContain('403 the user "system:serviceaccount:shop:viewer" may not get /flows');
    for (const [name, rules] of [
      ['flows', [{ nonResourceURLs: ['/flows'], verbs: ['get'] }]],
      ['lists', [{ apiGroups: [''], resources: ['pods'], verbs: ['list'] }]],
    ] as const) {
      await cluster.send('POST', `${rbac}/clusterroles`, { metadata: { name }, rules });
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name };
      const path = name === 'flows' ? `${rbac}/clusterrolebindings` : `${rbac}/namespaces/shop/rolebindings`;
      await cluster.send('POST', path, { metadata: { name }, roleRef, subjects });
    }
    const connected = (to: string) => `pod/shop/client | ${to} | connected | -`;
    // A refusal is kept for ten seconds.
    const own = async () => flowsIn((await said(...account)).stdout);
    await expect.poll(own, patience).toContain(connected('svc/shop/web:80 | pod/shop/web'));
    expect((await own()).filter((line) => line.includes('/bank/'))).toEqual([]);
    const all = flowsIn((await said('-o', 'json', '--outcome', 'connected')).stdout);
    expect(all).toContain(connected('- | pod/bank/vault'));
  });

  it('need no more than a look at the log where they cannot be had', async () => {
    for (const node of nodes) await expect.poll(() => left(node), patience).toEqual([]);
    expect(agents.get('node-1')?.logged).toContain('flows of this node can be asked for');
    expect(agents.get('node-1')?.logged).not.toContain('not allowed to');
    const none = await said('--agents-namespace', 'shop');
    expect(none.exitCode).toBe(2);
    expect(none.stderr).toContain('no agent of https://127.0.0.1:6443 tells flows');
  });
});
