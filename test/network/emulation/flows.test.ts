import { type ChildProcess, spawn } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Transport } from '../../../src/client/transport.ts';
import { connectCluster } from '../../../src/commands/connect.ts';
import { endText, type Flow, serviceText, workloadText } from '../../../src/network/flows/flow.ts';
import { listAt, recordAt, textAt } from '../../../src/objects/json.ts';
import { missingFor, missingProgram } from '../support/gate.ts';
import { until } from '../support/pod-network.ts';
import { end, UpHome } from '../support/up-process.ts';

const missing = missingFor('user') || missingProgram('conntrack', 'conntrack');
/** Each command starts a process: a busy machine needs minutes for some dozens of them. */
const timeoutMs = 600_000;
const title = `flows${missing === '' ? '' : ` (missing: ${missing})`}`;

/** Sends one packet or connection of each line, `protocol address port`, and says when each has an answer or has none. */
const sender = `
const lines = process.argv[1].split(',');
const one = (line) => new Promise((resolve) => {
  const [protocol, host, port] = line.split(' ');
  const isTcp = protocol === 'tcp';
  const socket = isTcp
    ? require('node:net').connect({ host, port: Number(port) })
    : require('node:dgram').createSocket(host.includes(':') ? 'udp6' : 'udp4');
  const over = (what) => {
    clearTimeout(late);
    if (isTcp) socket.destroy(); else socket.close();
    resolve(what);
  };
  const late = setTimeout(over, 3000, 'silent');
  socket.once(isTcp ? 'connect' : 'message', () => over('connected'));
  socket.on('error', () => { if (isTcp) over('refused'); });
  if (!isTcp) socket.send('hello', Number(port), host);
});
Promise.all(lines.map(async (line) => console.log(line, await one(line)))).then(() => process.exit(0));
`;

/** Opens many connections, or sends many packets of UDP, to one address and port. */
const flood = `
const [protocol, host, port, count] = process.argv.slice(1);
const connect = () => new Promise((resolve) => {
  const socket = require('node:net').connect({ host, port: Number(port) });
  socket.once('connect', () => socket.destroy()).once('error', () => undefined).once('close', resolve);
});
(async () => {
  let left = Number(count);
  if (protocol === 'tcp') {
    await Promise.all(Array.from({ length: 200 }, async () => { while (left-- > 0) await connect(); }));
  } else {
    const socket = require('node:dgram').createSocket('udp4');
    while (left-- > 0) await new Promise((resolve) => socket.send('x', Number(port), host, resolve));
  }
  console.log('sent');
  process.exit(0);
})();
`;

/** Pods by their apps. A policy isolates `closed`, and another one what `mute` sends. */
const nodeOf = { client: 'node-1', server: 'node-2', closed: 'node-2', mute: 'node-1' } as const;
type App = keyof typeof nodeOf;
const apps: readonly App[] = ['client', 'server', 'closed', 'mute'];

/** What `flows` says, in a line. */
function lineOf(flow: Flow): string {
  const { protocol, from, to, outcome, decidedBy, http } = flow;
  const by = [decidedBy?.object, decidedBy?.field].filter((each) => each !== undefined).join(' ');
  return [
    ...[protocol, workloadText(from), serviceText(flow) || '-', to === undefined ? '-' : endText(to)],
    ...[http === undefined ? outcome : `${outcome} ${http.status}`, by || '-'],
  ].join(' | ');
}

/** They are checked member by member where they are compared. */
function isFlow(value: unknown): value is Flow {
  return textAt(value, 'outcome') !== '';
}

function flowsIn(text: string): readonly Flow[] {
  const lines = text.split('\n').filter((line) => line.startsWith('{'));
  return lines.flatMap((line) => {
    const flow: unknown = JSON.parse(line);
    return isFlow(flow) ? [flow] : [];
  });
}

/** The last that was said of each. */
function latest(flows: readonly Flow[]): readonly Flow[] {
  return [...new Map(flows.map((flow) => [flow.id, flow])).values()];
}

function both(tcp: string, udp: string, addresses: readonly string[]): readonly string[] {
  return addresses.flatMap((address) => [`tcp ${address} ${tcp}`, `udp ${address} ${udp}`]);
}

describe.skipIf(missing !== '')(title, () => {
  const home = new UpHome('user');
  let up: ChildProcess;
  let transport: Transport;
  const pods = new Map<string, string>();
  const podIPs = new Map<string, readonly string[]>();

  beforeAll(async () => {
    up = await home.start([
      ...['--service-cluster-ip-range', '10.96.0.0/16,fd00:10:96::/112', '--page', 'off', '--nodes', '2'],
    ]);
    transport = await connectCluster({ kind: 'kubeconfig', path: home.kubeconfig });
    await send('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } });
    for (const app of apps) {
      await deploy(app);
      await service(app, { selector: { app } });
    }
    await service('empty', { selector: { app: 'nobody' } });
    await service('outer', { type: 'LoadBalancer', selector: { app: 'server' } });
    await service('ranged', {
      ...{ type: 'LoadBalancer', selector: { app: 'server' } },
      loadBalancerSourceRanges: ['192.0.2.77/32', '2001:db8::77/128'],
    });
    await policy('deny-in', { podSelector: { matchLabels: { app: 'closed' } }, policyTypes: ['Ingress'] });
    await policy('deny-out', { podSelector: { matchLabels: { app: 'mute' } }, policyTypes: ['Egress'] });
    await policy('allow-in', {
      ...{ podSelector: { matchLabels: { app: 'server' } }, policyTypes: ['Ingress'] },
      ingress: [{ from: [{ ipBlock: { cidr: '0.0.0.0/0' } }, { ipBlock: { cidr: '::/0' } }] }],
    });
    await until(runningPods, (count) => count === apps.length);
  });
  afterAll(async () => {
    await transport.close();
    await end(up, 'SIGTERM');
    home.remove();
  });

  async function send(method: 'GET' | 'POST', path: string, body?: unknown): Promise<unknown> {
    return (await transport.request(method, path, body === undefined ? {} : { body })).json();
  }

  async function deploy(app: App): Promise<void> {
    const ports = [
      { name: 'web', containerPort: 8080 },
      { name: 'echo', containerPort: 9090, protocol: 'UDP' },
    ];
    await send('POST', '/apis/apps/v1/namespaces/shop/deployments', {
      metadata: { name: app },
      spec: {
        selector: { matchLabels: { app } },
        template: {
          metadata: { labels: { app } },
          spec: { nodeName: nodeOf[app], containers: [{ name: 'main', image: 'example.com/main:1', ports }] },
        },
      },
    });
  }

  async function service(name: string, spec: object): Promise<void> {
    const ports = [
      { name: 'web', port: 80, targetPort: 'web' },
      { name: 'echo', port: 90, targetPort: 'echo', protocol: 'UDP' },
    ];
    await send('POST', '/api/v1/namespaces/shop/services', {
      metadata: { name },
      spec: { ipFamilyPolicy: 'RequireDualStack', ports, ...spec },
    });
  }

  async function policy(name: string, spec: object): Promise<void> {
    const path = '/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies';
    await send('POST', path, { metadata: { name }, spec });
  }

  async function runningPods(): Promise<number> {
    const list = listAt(await send('GET', '/api/v1/namespaces/shop/pods'), 'items');
    for (const pod of list) {
      const app = textAt(pod, 'metadata', 'labels', 'app');
      pods.set(app, textAt(pod, 'metadata', 'name'));
      const ips = listAt(pod, 'status', 'podIPs').map((each) => textAt(each, 'ip'));
      podIPs.set(app, ips);
    }
    return list.filter((pod) => textAt(pod, 'status', 'phase') === 'Running').length;
  }

  async function clusterIPs(name: string): Promise<readonly string[]> {
    return listAt(await send('GET', `/api/v1/namespaces/shop/services/${name}`), 'spec', 'clusterIPs').map(
      String,
    );
  }

  /** The addresses of a load balancer, one of each family. */
  async function balancerIPs(path: string): Promise<readonly string[]> {
    const found = async (): Promise<readonly string[]> =>
      listAt(await send('GET', path), 'status', 'loadBalancer', 'ingress').map((each) => textAt(each, 'ip'));
    await expect.poll(found).toHaveLength(2);
    return await found();
  }

  const inPod = (app: App): readonly string[] => ['-n', 'shop', '--pod', `deploy/${app}`];

  async function run(place: readonly string[], program: string, ...args: readonly string[]): Promise<string> {
    return await home.output(place, process.execPath, '-e', program, ...args);
  }

  /** Follows flows, once it has begun. */
  async function follow() {
    const [program = '', ...words] = home.argv('flows', '-f', '-o', 'json', '--last', '0');
    const child = spawn(program, words, { env: home.environment, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    let errors = '';
    child.stdout.on('data', (chunk) => (output += String(chunk)));
    child.stderr.on('data', (chunk) => (errors += String(chunk)));
    await expect.poll(() => tablesOfFlows()).toEqual(['node-1', 'node-2']);
    const begun = async (): Promise<number> => {
      await run(['--node', 'node-1'], sender, `tcp ${podIPs.get('server')?.[0] ?? ''} 8080`);
      return flowsIn(output).length;
    };
    await expect.poll(begun).toBeGreaterThan(0);
    return {
      /** Without those by which it was seen to have begun. */
      flows: () => latest(flowsIn(output)).filter(({ from }) => from.kind !== 'Node'),
      errors: () => errors,
      end: async () => await end(child, 'SIGINT'),
    };
  }

  /** The nodes whose kernels have the table of flows. */
  function tablesOfFlows(): readonly string[] {
    return ['node-1', 'node-2'].filter((node) =>
      home.run(['--node', node], 'nft', 'list', 'tables').stdout.includes('servicenet-flows'),
    );
  }

  /** The nodes whose kernels tell connections to a netlink socket: its columns are protocol and groups, among others. */
  function listenersOfFlows(): readonly string[] {
    return ['node-1', 'node-2'].filter((node) =>
      / 12 +\d+ +00000007 /.test(home.run(['--node', node], 'cat', '/proc/net/netlink').stdout),
    );
  }

  it(
    'say each connection once, by both protocols and families, with who decided',
    async () => {
      const [ofServer, ofClosed, ofEmpty] = [
        await clusterIPs('server'),
        await clusterIPs('closed'),
        await clusterIPs('empty'),
      ];
      const path = '/api/v1/namespaces/shop/services';
      const [outer, ranged] = [await balancerIPs(`${path}/outer`), await balancerIPs(`${path}/ranged`)];
      const viewer = await follow();
      expect(listenersOfFlows()).toEqual(['node-1', 'node-2']);
      const said = [
        await run(
          inPod('client'),
          sender,
          [
            ...both('80', '90', [...ofServer, ...ofClosed, ...ofEmpty, ...ranged]),
            ...(podIPs.get('server') ?? []).map((address) => `tcp ${address} 99`),
          ].join(','),
        ),
        await run(inPod('mute'), sender, both('80', '90', ofServer).join(',')),
        await run(['--outside'], sender, both('80', '90', outer).join(',')),
      ].join('');
      expect(said.match(/ connected$/gm)).toHaveLength(8);

      const pod = (app: App): string => `pod/shop/${pods.get(app) ?? ''}`;
      const twice = (line: string): readonly string[] => [line, line];
      const closedPort = twice(`TCP | deploy/shop/client | - | ${pod('server')} | refused | -`);
      const all = [
        ...closedPort,
        ...(['TCP | 80', 'UDP | 90'] as const).flatMap((each) => {
          const [protocol = '', port = ''] = each.split(' | ');
          const client = `${protocol} | deploy/shop/client`;
          const allowed = `svc/shop/server:${port} | ${pod('server')} | connected | NetworkPolicy shop/allow-in`;
          const balanced = `svc/shop/outer:${port} | ${pod('server')} | connected | NetworkPolicy shop/allow-in`;
          return [
            ...['spec.ingress[0].from[0]', 'spec.ingress[0].from[1]'].flatMap((field) => [
              `${client} | ${allowed} ${field}`,
              `${protocol} | outside | ${balanced} ${field}`,
            ]),
            ...twice(
              `${client} | svc/shop/closed:${port} | ${pod('closed')} | dropped | NetworkPolicy shop/deny-in spec.ingress`,
            ),
            ...twice(`${client} | svc/shop/empty:${port} | - | refused | Service shop/empty`),
            ...twice(
              `${client} | svc/shop/ranged:${port} | - | dropped | Service shop/ranged spec.loadBalancerSourceRanges`,
            ),
            ...twice(
              `${protocol} | deploy/shop/mute | svc/shop/server:${port} | ${pod('server')} | dropped | NetworkPolicy shop/deny-out spec.egress`,
            ),
          ];
        }),
      ].toSorted();
      await expect.poll(() => viewer.flows().map(lineOf).toSorted()).toEqual(all);
      expect(viewer.errors()).toBe('');
      await viewer.end();
      await expect.poll(tablesOfFlows).toEqual([]);
      expect(listenersOfFlows()).toEqual([]);

      // Without a viewer before: what the kernel remembers.
      const lasting = `require('node:net').connect({ host: process.argv[1], port: 80 }).on('error', () => process.exit(1))`;
      const open = home.begin(inPod('client'), process.execPath, '-e', lasting, ofServer[0] ?? '');
      const known = (): readonly string[] =>
        flowsIn(home.servicenet('flows', '-n', 'shop', '-o', 'json').stdout).map(lineOf);
      const wanted = all.find(
        (line) => line.includes('client | svc/shop/server:80') && line.includes('from[0]'),
      );
      await expect.poll(known).toContain(wanted);
      // What was denied is there for five minutes, and can be had by who decided.
      const decided = (...words: readonly string[]): readonly string[] =>
        home
          .servicenet('flows', '-n', 'shop', '-o', 'json', ...words)
          .stdout.split('\n')
          .filter((line) => line !== '');
      const denied = flowsIn(decided('--by', 'netpol/deny-in').join('\n'));
      expect(denied.map(({ protocol, to }) => `${protocol} ${to?.name ?? ''}`).toSorted()).toEqual(
        ['TCP', 'UDP'].flatMap((protocol) => twice(`${protocol} ${pods.get('closed') ?? ''}`)),
      );
      expect(new Set(denied.map(({ decidedBy }) => decidedBy?.object))).toEqual(
        new Set(['NetworkPolicy shop/deny-in']),
      );
      const groups = decided('--groups', '--by', 'svc/shop/empty').map((line) =>
        textAt(JSON.parse(line), 'decidedBy'),
      );
      expect(groups).toHaveLength(2);
      for (const by of groups) expect(by).toMatch(/^Service shop\/empty: /);
      await end(open, 'SIGTERM');
      await expect.poll(tablesOfFlows).toEqual([]);
      expect(listenersOfFlows()).toEqual([]);
    },
    timeoutMs,
  );

  it(
    'are seen by the nodes of the planned way, where a trace opens one',
    async () => {
      const outer = await balancerIPs('/api/v1/namespaces/shop/services/outer');
      /** Of the way to each address: what its nodes have seen. */
      const seen = (
        from: string,
        addresses: readonly string[],
        port: number,
      ): readonly (readonly string[])[] =>
        addresses.flatMap((address) => {
          const to = address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
          const { stdout } = home.servicenet('trace', '-n', 'shop', from, to, '--check', '-o', 'json');
          const ways = listAt(JSON.parse(stdout), 'traces').flatMap((traced) => listAt(traced, 'hops'));
          return ways.map((way) =>
            (Array.isArray(way) ? way : []).flatMap((hop: unknown) => {
              const { agrees, message } = recordAt(hop, 'seen');
              const as = agrees === true ? '' : ' against the plan';
              return typeof message === 'string' ? [`${textAt(hop, 'at')}: ${message}${as}`] : [];
            }),
          );
        });
      const twice = (...way: readonly string[]): readonly (readonly string[])[] => [way, way];
      const [first, second] = ['node node-1: seen on node-1', 'node node-2: seen on node-2'];
      const dropped = (node: string): string => `node ${node}: not seen to pass, as planned`;
      expect(seen('deploy/client', await clusterIPs('server'), 80)).toEqual(twice(first, second));
      expect(seen('deploy/client', await clusterIPs('closed'), 80)).toEqual(twice(first, dropped('node-2')));
      expect(seen('deploy/mute', await clusterIPs('server'), 80)).toEqual(twice(dropped('node-1')));
      expect(seen('node/node-1', podIPs.get('server') ?? [], 8080)).toEqual(twice(first, second));
      // The kernel forgets at once what was refused.
      expect(seen('deploy/client', await clusterIPs('empty'), 80)).toEqual(twice());
      // By whichever node announces the address.
      const balanced = seen('outside', outer, 80);
      expect(balanced).toHaveLength(2);
      for (const way of balanced) expect([[second], [first, second]]).toContainEqual(way);
    },
    timeoutMs,
  );

  it(
    'say names that do not exist, and requests that the router refuses, each once',
    async () => {
      await send('POST', '/apis/networking.k8s.io/v1/namespaces/shop/ingresses', {
        metadata: { name: 'shop' },
        spec: {
          rules: [
            {
              host: 'shop.test',
              http: {
                paths: [
                  {
                    path: '/',
                    pathType: 'Prefix',
                    backend: { service: { name: 'empty', port: { number: 80 } } },
                  },
                ],
              },
            },
          ],
        },
      });
      const [router = ''] = await balancerIPs('/api/v1/namespaces/kube-system/services/servicenet-router');
      const viewer = await follow();
      const ask = async (host: string, place: readonly string[]): Promise<string> =>
        await home.output(
          place,
          'curl',
          '-s',
          '-o',
          '/dev/null',
          '-w',
          '%{http_code}',
          '-H',
          `Host: ${host}`,
          `http://${router}/a`,
        );
      await expect.poll(() => ask('shop.test', ['--outside'])).toBe('503');
      const asked = viewer.flows().length;
      expect(asked).toBeGreaterThanOrEqual(0);
      expect(await ask('other.test', inPod('client'))).toBe('404');
      const curl = ['curl', '-s', '-m', '5'];
      await home.output(inPod('client'), ...curl, 'http://server.shopp/');
      await home.output(inPod('client'), ...curl, 'http://sever/');
      await home.output(inPod('client'), ...curl, 'http://server.shop/');
      const said = (): readonly string[] =>
        viewer
          .flows()
          .filter(({ outcome }) => outcome !== 'connected')
          .map(lineOf)
          .toSorted();
      const routed = 'svc/kube-system/servicenet-router:80 | -';
      await expect
        .poll(() => said().filter((line) => !line.includes('503')))
        .toEqual([
          `TCP | deploy/shop/client | ${routed} | refused 404 | -`,
          'UDP | deploy/shop/client | dns/server.shopp | - | NXDOMAIN | -',
          'UDP | deploy/shop/client | dns/sever | - | NXDOMAIN | -',
        ]);
      expect(said()).toContain(`TCP | outside | ${routed} | refused 503 | Ingress shop/shop`);
      const expectation = (flow: string, timeout: string): number | null =>
        home.servicenet('flows', '-n', 'shop', '--timeout', timeout, '--expect', flow).status;
      expect(expectation('deploy/client dns/server.shopp NXDOMAIN', '1m')).toBe(0);
      expect(expectation('deploy/client svc/server:80 connected', '1m')).toBe(0);
      expect(expectation('deploy/client svc/server:80 dropped', '1s')).toBe(1);
      await viewer.end();
    },
    timeoutMs,
  );

  it(
    'count what they lose under a flood, and every packet that is denied',
    async () => {
      const [toServer = ''] = await clusterIPs('server');
      const viewer = await follow();
      expect(await run(inPod('client'), flood, 'tcp', toServer, '80', '5000')).toBe('sent\n');
      const told = (): number =>
        viewer.flows().filter((flow) => serviceText(flow) === 'svc/shop/server:80').length;
      const lost = (): number =>
        [...viewer.errors().matchAll(/FlowsSampled: (\d+) flows/g)].reduce(
          (sum, [, each]) => sum + Number(each),
          0,
        );
      await expect.poll(() => told() + lost()).toBeGreaterThanOrEqual(5000);
      // A few others may have been lost with them.
      expect(told() + lost()).toBeLessThan(5100);
      const packets = (): number | undefined =>
        viewer.flows().findLast(({ to }) => to?.name === pods.get('closed') && to?.port === 91)?.packets;
      expect(await run(inPod('client'), flood, 'udp', podIPs.get('closed')?.[0] ?? '', '91', '5000')).toBe(
        'sent\n',
      );
      await expect.poll(packets).toBe(5000);
      await viewer.end();
      await expect.poll(tablesOfFlows).toEqual([]);
      expect(listenersOfFlows()).toEqual([]);
    },
    timeoutMs,
  );
});
