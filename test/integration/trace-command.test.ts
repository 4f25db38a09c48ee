import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { runCommandLine } from '../../src/commands/program.ts';
import { listAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';

let api: TestServer;
let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'servicenet-trace-'));
  api = await startApiServer({ nodes: 2, network: false });
  await writeFile(join(folder, 'kubeconfig'), api.kubeconfig);
  await post('/api/v1/namespaces', { metadata: { name: 'shop', labels: { team: 'shop' } } });
  for (const name of ['cart', 'catalog', 'admin']) await pod(name);
  await service('catalog', { ports: [{ name: 'http', port: 80, targetPort: 'http' }] });
  await service('none', { selector: { app: 'nobody' }, ports: [{ port: 80 }] });
  await service('peers', { clusterIP: 'None', ports: [{ name: 'http', port: 8080 }] });
  await post('/api/v1/namespaces/shop/services', {
    metadata: { name: 'world' },
    spec: { type: 'ExternalName', externalName: 'world.invalid' },
  });
  await vi.waitUntil(async () => (await endpointsOf('catalog')) === 1, { timeout: 60_000 });
  await vi.waitUntil(async () => (await endpointsOf('peers')) === 1, { timeout: 60_000 });
});
afterAll(async () => {
  await api.stop();
  await rm(folder, { recursive: true, force: true });
});

async function post(path: string, body: object): Promise<void> {
  const answer = await call(api.client, 'POST', path, { body });
  expect(answer).toMatchObject({ status: 201 });
}

async function pod(name: string, app = name): Promise<void> {
  const ports = [{ name: 'http', containerPort: 8080 }];
  await post('/api/v1/namespaces/shop/pods', {
    metadata: { name, labels: { app } },
    spec: { containers: [{ name, image: 'web', ports }] },
  });
  const phase = async (): Promise<string> =>
    textAt((await call(api.client, 'GET', `/api/v1/namespaces/shop/pods/${name}`)).body, 'status', 'phase');
  await vi.waitUntil(async () => (await phase()) === 'Running', { timeout: 60_000 });
}

async function service(name: string, spec: object): Promise<void> {
  const selected = { selector: { app: 'catalog' }, ...spec };
  await post('/api/v1/namespaces/shop/services', { metadata: { name }, spec: selected });
}

async function endpointsOf(name: string): Promise<number> {
  const query = { labelSelector: `kubernetes.io/service-name=${name}` };
  const slices = await call(api.client, 'GET', '/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices', {
    query,
  });
  return listAt(listAt(slices.body, 'items')[0], 'endpoints').length;
}

/** Runs the command in this process. */
async function trace(...args: string[]): Promise<{ code: number; output: string; errors: string }> {
  let output = '';
  let errors = '';
  const out = vi
    .spyOn(process.stdout, 'write')
    .mockImplementation((text) => (output += text.toString()) !== '');
  const err = vi
    .spyOn(process.stderr, 'write')
    .mockImplementation((text) => (errors += text.toString()) !== '');
  try {
    process.exitCode = undefined;
    const kubeconfig = ['--kubeconfig', join(folder, 'kubeconfig')];
    const code = await runCommandLine(['node', 'servicenet', 'trace', ...kubeconfig, ...args]);
    return { code, output, errors };
  } finally {
    process.exitCode = undefined;
    out.mockRestore();
    err.mockRestore();
  }
}

async function withPolicy(spec: object, work: () => Promise<void>): Promise<void> {
  const policies = '/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies';
  await post(policies, { metadata: { name: 'web' }, spec });
  try {
    await work();
  } finally {
    await call(api.client, 'DELETE', `${policies}/web`);
  }
}

describe('servicenet trace', () => {
  test.each([
    [
      'a Service',
      'svc/shop/catalog:80',
      /service +allow +Service shop\/catalog +the cluster IP .* leads to its endpoint/,
    ],
    ['a Service by the only port', 'svc/shop/catalog', /leads to its endpoint/],
    ['a Service by the name of a port', 'svc/shop/catalog:http', /leads to its endpoint/],
    [
      'a DNS name of the source namespace',
      'catalog:80',
      /dns +allow +catalog\.shop\.svc\.cluster\.local has 10\.96\./,
    ],
    ['a headless Service', 'peers:8080', /dns +allow +peers\.shop\.svc\.cluster\.local has 10\.244\./],
    ['a Pod', 'pod/shop/catalog', /reachable/],
    ['a Pod by its namespace and name', 'shop/catalog', /reachable/],
  ])('follows a connection to %s', async (_what, destination, line) => {
    const { code, output } = await trace('pod/shop/cart', destination);
    expect(output).toMatch(line);
    expect(output).toMatch(/^reachable$/m);
    expect(code).toBe(0);
    const wide = await trace('pod/shop/cart', destination, '-o', 'wide');
    expect(wide.output).toMatch(
      /^reachable \(proxy: cluster CIDR 10\.244\..*\(spec\.podCIDRs of the Nodes\)/m,
    );
  });

  test.each([
    ['tree', /^Pod shop\/cart\n└─ 10\.\S+ → 10\.\S+:80\n {3}node \S+\n.*service: Service shop\/catalog: /],
    ['mermaid', /^flowchart TD\n {2}n0\["Pod shop\/cart"\]/],
    ['dot', /^digraph way \{\n/],
    ['svg', /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" /],
  ])('draws the way, as %s', async (format, picture) => {
    const { code, output } = await trace('pod/shop/cart', 'svc/shop/catalog', '-o', format);
    expect(output).toMatch(picture);
    expect(output).toContain('reachable');
    expect(code).toBe(0);
  });

  test.each([
    [
      'a Service without endpoints',
      'svc/shop/none',
      /has no endpoint \(SelectorMatchesNothing: no Pod has the labels .*\); the packet is refused/,
      1,
    ],
    ['a port that the Service has not', 'svc/shop/catalog:81', /the Service does not have this port/, 1],
    ['an unused cluster IP', '10.96.255.1:80', /no Service has this cluster IP; the packet is dropped/, 1],
    ['a name that is not there', 'nothing.shop.svc.cluster.local:80', /dns +deny +no name of the cluster/, 1],
    ['an unknown name', 'svc/shop/world:80', /dns +unknown +world\.invalid is no name of the cluster/, 2],
  ])('says where a connection to %s ends', async (_what, destination, line, expected) => {
    const { code, output } = await trace('pod/shop/cart', destination);
    expect(output).toMatch(line);
    expect(code).toBe(expected);
  });

  test('names the policy, rule and peer that decided, for each endpoint', async () => {
    const ingress = [
      { from: [{ podSelector: { matchLabels: { app: 'cart' } } }], ports: [{ port: 'http' }] },
    ];
    await withPolicy({ podSelector: { matchLabels: { app: 'catalog' } }, ingress }, async () => {
      const allowed = await trace('pod/shop/cart', 'svc/shop/catalog', '-o', 'json');
      const [found] = listAt(listAt(JSON.parse(allowed.output), 'traces')[0], 'endpoints');
      expect(found).toMatchObject({
        object: 'Pod shop/catalog',
        port: 8080,
        reachable: true,
        stages: [
          { stage: 'egress NetworkPolicy', verdict: 'pass' },
          { stage: 'EgressFirewall', verdict: 'pass' },
          { stage: 'EgressIP', verdict: 'pass' },
          { stage: 'EgressQoS', verdict: 'pass' },
          {
            ...{ stage: 'ingress NetworkPolicy', verdict: 'allow' },
            ...{ object: 'NetworkPolicy shop/web', field: 'spec.ingress[0].from[0]' },
          },
          { stage: 'target port', verdict: 'pass', message: 'a container declares 8080/TCP' },
        ],
      });
      const denied = await trace('pod/shop/admin', 'svc/shop/catalog');
      expect(denied.code).toBe(1);
      expect(denied.output).toMatch(
        /ingress NetworkPolicy +deny +NetworkPolicy shop\/web +spec\.ingress +the policy isolates/,
      );
      // The node of an endpoint is exempt; a machine outside is not, unless a node hides it.
      expect((await trace('outside', 'pod/shop/catalog')).code).toBe(1);
      const byPod = (await trace('-n', 'shop', '--matrix', '--port', '8080', '-o', 'wide')).output.split(
        '\n',
      );
      expect(byPod.slice(0, 4)).toEqual([
        'FROM \\ TO     PODS   1 2 3 4',
        'pod/admin     1      . . X .',
        'pod/cart      1      . . + .',
        'pod/catalog   1      . . . .',
      ]);
      expect(byPod.join('\n')).toMatch(
        /^X NetworkPolicy shop\/web spec\.ingress: the policy isolates the Pod, and no rule matches \(\d cells\)$/m,
      );
    });
  });

  test('plans what a policy would change, as it changes it then', async () => {
    const matrix = async (...flags: readonly string[]): Promise<unknown> =>
      JSON.parse((await trace('-n', 'shop', '--matrix', '-o', 'json', ...flags)).output);
    const cells = (reach: unknown): ReadonlyMap<string, string> =>
      new Map(
        listAt(reach, 'sources').flatMap((source, row) =>
          listAt(reach, 'destinations').map((destination, column): [string, string] => [
            `${textAt(source, 'name')} ${textAt(destination, 'name')}`,
            textAt(
              listAt(reach, 'cells')[row] === undefined
                ? undefined
                : listAt(listAt(reach, 'cells')[row])[column],
              'verdict',
            ),
          ]),
        ),
      );
    const spec = { podSelector: {}, policyTypes: ['Egress'], egress: [{ to: [{ podSelector: {} }] }] };
    const policy = {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: 'web' },
      spec,
    };
    const folder = await mkdtemp(join(tmpdir(), 'servicenet-plan-'));
    const file = join(folder, 'policy.json');
    await writeFile(file, JSON.stringify(policy));
    try {
      const before = cells(await matrix());
      const planned = listAt(await matrix('-f', file), 'changes').flatMap((change) => {
        const [was, is] = [textAt(change, 'before', 'verdict'), textAt(change, 'after', 'verdict')];
        const destination = textAt(change, 'destination').replace(/:\d+$/, '');
        return was === is ? [] : [`${textAt(change, 'source')} ${destination}: ${is}`];
      });
      await withPolicy(spec, async () => {
        const changed = [...cells(await matrix())].flatMap(([key, is]) =>
          before.get(key) === is ? [] : [`${key}: ${is}`],
        );
        expect(changed).toContain('pod/shop/cart outside: denied');
        expect(planned.toSorted()).toEqual(changed.toSorted());
        const undone = await trace('-n', 'shop', '--matrix', '--delete', 'web');
        expect(undone.output).toMatch(
          /^pod\/shop\/cart +outside:443 +denied +open +no policy isolates the Pod$/m,
        );
      });
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test('judges egress before ingress', async () => {
    const egress = [{ to: [{ ipBlock: { cidr: '203.0.113.0/24' } }] }];
    await withPolicy({ podSelector: {}, policyTypes: ['Egress'], egress }, async () => {
      expect((await trace('pod/shop/cart', '203.0.113.9:443')).code).toBe(0);
      const denied = await trace('pod/shop/cart', '198.51.100.9:443');
      expect(denied.output).toMatch(/egress NetworkPolicy +deny +NetworkPolicy shop\/web +spec\.egress /);
    });
  });

  test('takes a machine outside as a destination, and prints each endpoint with its verdict', async () => {
    const outside = await trace(
      'pod/shop/cart',
      'outside:443',
      '--outside-address',
      '198.51.100.7',
      '-o',
      'json',
    );
    expect([outside.code, textAt(listAt(JSON.parse(outside.output), 'traces')[0], 'destination')]).toEqual([
      0,
      'TCP 198.51.100.7 port 443',
    ]);
    await pod('api-1', 'catalog');
    await vi.waitUntil(async () => (await endpointsOf('catalog')) === 2, { timeout: 60_000 });
    const { output } = await trace('pod/shop/cart', 'svc/shop/catalog');
    expect(output).toMatch(/^Pod shop\/api-1 \(10\.244\.\S+ port 8080\): reachable$/m);
    const { errors } = await trace('pod/shop/api', 'svc/shop/catalog');
    expect(errors).toContain('there is no Pod shop/api: did you mean shop/api-1?');
    await call(api.client, 'DELETE', '/api/v1/namespaces/shop/pods/api-1');
    await vi.waitUntil(async () => (await endpointsOf('catalog')) === 1, { timeout: 60_000 });
  });

  test("takes options of the proxy from flags, else from kube-proxy's ConfigMap, and says so", async () => {
    const configMaps = '/api/v1/namespaces/kube-system/configmaps';
    const config = 'mode: nftables\nclusterCIDR: 10.244.0.0/16\nnftables: { masqueradeAll: true }\n';
    await post(configMaps, { metadata: { name: 'kube-proxy' }, data: { 'config.conf': config } });
    try {
      const flags = ['--cluster-cidr', '10.0.0.0/8', '-o', 'wide'];
      const given = await trace('pod/shop/cart', 'svc/shop/catalog', ...flags);
      expect(given.output).toContain(
        "(proxy: cluster CIDR 10.0.0.0/8 (flag); masquerade all true (kube-proxy's ConfigMap); node port addresses primary (kube-proxy's ConfigMap))",
      );
      expect(given.output).toContain('which sees the node as the client');
    } finally {
      await call(api.client, 'DELETE', `${configMaps}/kube-proxy`);
    }
  });

  test.each([
    [['pod/shop/nobody', 'svc/shop/catalog'], 'there is no Pod shop/nobody'],
    [['pod/shop/ca', 'svc/shop/catalog'], 'there is no Pod shop/ca\n'],

    [['pod/shop/cart', 'svc/shop/nobody:80'], 'there is no Service shop/nobody'],
    [
      ['pod/shop/cart', 'svc/shop/catalog:https'],
      'Service shop/catalog has no TCP port https: it has 80 (http)',
    ],
    [['pod/shop/cart', 'node/node-1'], 'give a port: the destination has none of its own'],
    [['pod/shop/cart', 'catalog:0'], '"0" is no port: a number from 1 to 65535'],
    [
      ['svc/shop/catalog', 'catalog:80'],
      '"svc/shop/catalog" is no source: give pod/NAMESPACE/NAME, deploy/…',
    ],
    [['nobody', 'catalog:80'], 'there is no Pod default/nobody'],
    [['deploy/shop/nobody', 'catalog:80'], 'there is no Pod of Deployment shop/nobody'],
    [
      ['pod/shop/cart', 'ingress/shop/web:80'],
      '"ingress/shop/web" names nothing: give svc/NAMESPACE/NAME:PORT',
    ],
    [['pod/shop/cart'], 'give a source and a destination'],
    [
      ['pod/shop/cart', 'catalog:80', '--delete', 'web'],
      '--filename and --delete plan policies: give --matrix too',
    ],
    [['pod/shop/cart', 'catalog:80', '--by', 'pod'], '--by is for --matrix'],
    [['-n', 'shop', '--matrix', '--delete', 'nothing'], 'there is no NetworkPolicy shop/nothing to delete'],
    [['--matrix', '-o', 'svg'], '--matrix: -o is table, wide or json'],
    [['--matrix', '-n', 'nowhere', '--port', '80'], 'there is no namespace nowhere'],
  ])('says what is wrong with %j, and exits with 2', async (args, message) => {
    const { code, errors } = await trace(...args);
    expect(errors).toContain(message);
    expect(code).toBe(2);
  });
});
