import { type ChildProcess, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { listAt, numberAt, parseRecord, recordAt, textAt } from '../../src/objects/json.ts';
import { machines, type NodeName } from './addresses.ts';
import { kubectl } from './control-plane.ts';
import { suiteTags } from './images.ts';
import type { Node } from './node.ts';
import { startKubeProxy } from './peers.ts';
import { onMachine, run, start, until } from './processes.ts';
import { program } from './programs.ts';
import { clusterCidrFlag, type Component } from './servicenet.ts';
import type { TestResult } from './suite.ts';

/** What a check is given. */
export interface Rig {
  readonly kubeconfig: string;
  readonly nodes: readonly Node[];
  readonly directory: string;
  readonly logs: string;
}

/** What Kubernetes' suite does not know of. */
interface Check {
  readonly name: string;
  readonly needs: readonly Component[];
  /** @returns what was measured. @throws {Error} where it does not hold. */
  readonly run: (rig: Rig) => Promise<string>;
}

const namespace = 'servicenet-checks';

/** Milliseconds that an address may be silent for: docs/announcing.md and docs/bgp.md, and what a Pod takes to start. */
const bounds = { crash: 5000, planned: 1000 };

const checks: readonly Check[] = [
  {
    name: 'layer 2: the agent is killed, and starts again',
    needs: [],
    run: (rig) =>
      handOver(rig, bounds.crash, async ({ owner }) => {
        const before = agentRestarts(rig, owner.name);
        signalAgent(owner, 'KILL');
        await until('the agent', 60, () => agentRestarts(rig, owner.name) > before);
      }),
  },
  {
    name: 'layer 2: the agent is stopped, the other node takes over, nothing happens at its return',
    needs: [],
    run: (rig) =>
      handOver(rig, bounds.crash, async ({ owner, other, isOwner }) => {
        signalAgent(owner, 'STOP');
        await until('the other node', 20, () => isOwner(other));
        signalAgent(owner, 'CONT');
        await sleep(5000);
      }),
  },
  {
    name: 'layer 2: the node is cut off',
    needs: [],
    run: (rig) =>
      handOver(rig, bounds.crash, async ({ owner, other, isOwner }) => {
        const link = (state: string): string => run('ip', ['link', 'set', `v-${owner.name}`, state]);
        link('down');
        try {
          await until('the other node', 20, () => isOwner(other));
        } finally {
          link('up');
        }
        await until('the node', 120, () => owner.isReady(rig.kubeconfig));
      }),
  },
  {
    name: 'layer 2: the node is drained',
    needs: [],
    run: (rig) =>
      handOver(rig, bounds.planned, async ({ owner, other, isOwner }) => {
        call(rig, 'drain', owner.name, '--ignore-daemonsets', '--delete-emptydir-data', '--force');
        await until('the other node', 20, () => isOwner(other));
        call(rig, 'uncordon', owner.name);
      }),
  },
  { name: 'BGP: both nodes announce; one is cut off, and drained', needs: [], run: bgp },
  { name: 'EgressIP: Pods leave by the address, from both nodes', needs: ['egress'], run: egressIp },
  { name: 'router: a request by an Ingress, at an address of the pool', needs: ['router'], run: router },
  { name: 'EgressFirewall: denies what its rules do', needs: ['policy'], run: egressFirewall },
  { name: 'flows: who connected, and what a policy denied', needs: ['flows', 'policy'], run: flows },
  { name: 'trace from outside names the node that announces', needs: [], run: traceFromOutside },
  { name: 'upgrade from three agents a node to one', needs: ['node', 'policy'], run: upgrade },
  // The last: from here on kube-proxy carries Services.
  { name: 'the way back: clean-up on every node, then kube-proxy', needs: ['node'], run: wayBack },
];

/** Runs the checks that the components let. */
export async function runChecks(rig: Rig, components: readonly Component[]): Promise<TestResult[]> {
  const results: TestResult[] = [];
  call(rig, 'create', 'namespace', namespace);
  await makeEcho(rig);
  for (const check of checks.filter(({ needs }) => needs.every((each) => components.includes(each)))) {
    const before = performance.now();
    const result = (state: string, message: string): TestResult => {
      const seconds = (performance.now() - before) / 1000;
      return { name: `[servicenet] ${check.name}`, state, seconds, message };
    };
    try {
      results.push(result('passed', await check.run(rig)));
    } catch (error) {
      results.push(result('failed', error instanceof Error ? error.message : String(error)));
    }
  }
  return results;
}

/** @throws {Error} where something does not hold. */
function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

function call({ kubeconfig }: Rig, ...words: string[]): string {
  return kubectl(kubeconfig, words);
}

function read(rig: Rig, ...words: string[]): unknown {
  return parseRecord(call(rig, 'get', '--output=json', ...words));
}

function apply({ kubeconfig }: Rig, ...items: readonly object[]): void {
  kubectl(kubeconfig, ['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
}

/** A server on each node, with a Service by layer 2 that each node serves from its own Pod. */
async function makeEcho(rig: Rig): Promise<void> {
  const image = suiteTags().find((each) => each.includes('/agnhost:')) ?? '';
  const container = { name: 'echo', image, args: ['netexec', '--http-port=8080'] };
  const template = { metadata: { labels }, spec: { containers: [container] } };
  apply(rig, {
    ...{ apiVersion: 'apps/v1', kind: 'DaemonSet', metadata: { name: 'echo', namespace } },
    spec: { selector: { matchLabels: labels }, template },
  });
  apply(rig, service('echo', {}));
  call(rig, '--namespace', namespace, 'rollout', 'status', 'daemonset/echo', '--timeout=120s');
  await until('the address of Service echo', 30, () => addressOf(rig, 'echo') !== '');
}

const labels = { app: 'echo' };

function service(name: string, annotations: Readonly<Record<string, string>>): object {
  const ports = [{ port: 80, targetPort: 8080 }];
  return {
    ...{ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace, annotations } },
    spec: { type: 'LoadBalancer', externalTrafficPolicy: 'Local', selector: labels, ports },
  };
}

/** The first address of a load balancer; empty: none yet. */
function addressOf(rig: Rig, name: string, where = namespace): string {
  const found = read(rig, 'service', name, '--namespace', where);
  return textAt(listAt(found, 'status', 'loadBalancer', 'ingress')[0], 'ip');
}

/** The Pod of a node, and its address. */
function podOf(rig: Rig, node: NodeName): { name: string; ip: string } {
  const pods = listAt(read(rig, 'pods', '--namespace', namespace, '--selector=app=echo'), 'items');
  const pod = pods.find((each) => textAt(each, 'spec', 'nodeName') === node);
  return { name: textAt(pod, 'metadata', 'name'), ip: textAt(pod, 'status', 'podIP') };
}

/** Sends a signal to the agent of a node. */
function signalAgent(node: Node, signal: 'KILL' | 'STOP' | 'CONT'): void {
  node.run('pkill', [`-${signal}`, '--full', 'node --features=']);
}

/** Whether the machine `out` has learnt an address from a node: by the node's MAC address but for its first byte. */
function announces(node: Node, address: string): boolean {
  const [, ...bytes] = node.run('cat', ['/sys/class/net/eth0/address']).trim().split(':');
  return run('ip', ['-n', 'out', 'neigh', 'show', address]).includes(`:${bytes.join(':')} `);
}

/** How often the agent of a node has been started again. */
function agentRestarts(rig: Rig, node: NodeName): number {
  const selector = '--selector=app.kubernetes.io/name=servicenet-agent';
  const pods = listAt(read(rig, 'pods', '--namespace=servicenet-system', selector), 'items');
  const pod = pods.find((each) => textAt(each, 'spec', 'nodeName') === node);
  return numberAt(listAt(pod, 'status', 'containerStatuses')[0], 'restartCount');
}

interface HandOver {
  readonly owner: Node;
  readonly other: Node;
  readonly isOwner: (node: Node) => boolean;
}

/** Watches the Service's address from the machine `out` while something happens to the node that announces it. */
async function handOver(
  rig: Rig,
  boundMs: number,
  act: (what: HandOver) => Promise<void> | void,
): Promise<string> {
  const address = addressOf(rig, 'echo');
  const isOwner = (node: Node): boolean => announces(node, address);
  const url = `http://${address}/hostname`;
  await until('an answer', 30, () => ask('out', url) !== '');
  const owner = rig.nodes.find((node) => isOwner(node));
  const other = rig.nodes.find((node) => node !== owner);
  if (owner === undefined || other === undefined) throw new Error(`nobody announces ${address}`);
  const probe = new Probe('out', url, `http://${podOf(rig, other.name).ip}:8080/hostname`);
  await sleep(2000);
  await act({ owner, other, isOwner });
  await sleep(4000);
  const { gapMs, failedTwice } = await probe.end();
  must(gapMs <= boundMs, `silent for ${gapMs} ms, at most ${boundMs} ms are right`);
  return `gap ${gapMs} ms, ${failedTwice} requests failed`;
}

/** What a machine gets by a request. @throws {Error} where there is no answer. */
function ask(machine: string, url: string, ...flags: readonly string[]): string {
  const [nsenter, ...rest] = onMachine(machine);
  return run(nsenter, [...rest, 'curl', '--silent', '--show-error', '--max-time', '3', ...flags, url]);
}

/** The same from a Pod. */
function askFromPod(rig: Rig, node: NodeName, url: string): string {
  const { name } = podOf(rig, node);
  const curl = ['curl', '--silent', '--show-error', '--max-time', '3', url];
  return call(rig, '--namespace', namespace, 'exec', name, '--', ...curl);
}

/** A client that asks until it is ended: `probe.ts`. */
class Probe {
  readonly #process: ChildProcess;
  readonly #output: Promise<string>;

  constructor(machine: string, url: string, beside: string) {
    const [nsenter, ...rest] = onMachine(machine);
    const words = [...rest, process.execPath, join(import.meta.dirname, 'probe.ts'), url, beside];
    const child = spawn(nsenter, words, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#process = child;
    this.#output = text(child.stdout);
  }

  async end(): Promise<{ gapMs: number; failedTwice: number }> {
    this.#process.stdin?.end();
    const seen = parseRecord(await this.#output);
    return { gapMs: numberAt(seen, 'gapMs'), failedTwice: numberAt(seen, 'failedTwice') };
  }
}

/** How long something takes to become true, in milliseconds. */
async function timed(what: string, seconds: number, done: () => boolean): Promise<number> {
  const before = performance.now();
  await until(what, seconds, done);
  return Math.round(performance.now() - before);
}

async function bgp(rig: Rig): Promise<string> {
  const configuration = join(rig.directory, 'bird.conf');
  const sessions = rig.nodes.map(
    ({ name }) => `protocol bgp ${name} from node { neighbor ${machines[name].ipv4} as 64512; }`,
  );
  writeFileSync(configuration, `${birdHead}${sessions.join('\n')}\n`);
  const files = ['-s', join(rig.directory, 'bird.ctl'), '-P', join(rig.directory, 'bird.pid')];
  const bird = start(rig.logs, 'bird', [...onMachine('out'), 'bird', '-f', '-c', configuration, ...files]);
  const api = { apiVersion: 'servicenet.dev/v1alpha1' };
  apply(
    rig,
    {
      ...{ ...api, kind: 'BGPPeer', metadata: { name: 'out' } },
      spec: { myASN: 64512, peerASN: 64513, peerAddress: machines.out.ipv4, holdTime: '3s' },
    },
    {
      ...{ ...api, kind: 'AddressPool', metadata: { name: 'routed' } },
      spec: { addresses: ['203.0.113.0/24'], autoAssign: false, announce: { bgp: {} } },
    },
    service('routed', { 'servicenet.dev/pool': 'routed' }),
  );
  try {
    await until('an address', 30, () => addressOf(rig, 'routed') !== '');
    const address = addressOf(rig, 'routed');
    const hops = (): number =>
      rig.nodes.filter(({ name }) =>
        run('ip', ['-n', 'out', 'route', 'show', address]).includes(`via ${machines[name].ipv4} `),
      ).length;
    const both = await timed('routes by both nodes', 30, () => hops() === 2);
    must(ask('far', `http://${address}/hostname`).startsWith('echo-'), 'no answer over BGP');
    const [node] = rig.nodes;
    if (node === undefined) throw new Error('there is no node');
    run('ip', ['link', 'set', `v-${node.name}`, 'down']);
    const cut = await timed('its route gone', 10, () => hops() === 1).finally(() =>
      run('ip', ['link', 'set', `v-${node.name}`, 'up']),
    );
    await until('the node', 120, () => node.isReady(rig.kubeconfig) && hops() === 2);
    const probe = new Probe('far', `http://${address}/hostname`, `http://${address}/hostname`);
    await sleep(2000);
    call(rig, 'cordon', node.name);
    const cordoned = await timed('its route gone', 10, () => hops() === 1);
    call(rig, 'uncordon', node.name);
    await until('its route', 20, () => hops() === 2);
    const { failedTwice } = await probe.end();
    must(failedTwice === 0, `${failedTwice} requests failed while a node was cordoned`);
    return `both after ${both} ms; cut off: ${cut} ms; cordoned: ${cordoned} ms, no request failed`;
  } finally {
    process.kill(bird);
  }
}

const birdHead = `router id ${machines.out.ipv4};
protocol device {}
protocol kernel { ipv4 { export all; }; merge paths on; }
template bgp node {
  local as 64513; hold time 3; error wait time 1, 10;
  ipv4 { import all; export none; };
}
`;

/** A server on the machine `out` that says who asks. */
async function serverOutside(rig: Rig): Promise<{ url: string; end: () => void }> {
  const server = start(rig.logs, 'outside', [
    ...[...onMachine('out'), program('agnhost'), 'netexec', '--http-port=8090', '--udp-port=-1'],
  ]);
  const url = `http://${machines.out.ipv4}:8090/clientip`;
  await until('the server outside', 10, () => ask('cp', url).startsWith(machines.cp.ipv4));
  return { url, end: () => void process.kill(server) };
}

async function egressIp(rig: Rig): Promise<string> {
  const { url, end } = await serverOutside(rig);
  const address = '192.168.77.240';
  try {
    for (const { name } of rig.nodes) call(rig, 'label', 'node', name, 'k8s.ovn.org/egress-assignable=');
    apply(rig, {
      ...{ apiVersion: 'k8s.ovn.org/v1', kind: 'EgressIP', metadata: { name: 'checks' } },
      spec: { egressIPs: [address], namespaceSelector: { matchLabels: { [namespaceLabel]: namespace } } },
    });
    const took = await timed('the address on both nodes', 60, () =>
      rig.nodes.every(({ name }) => askFromPod(rig, name, url).startsWith(`${address}:`)),
    );
    call(rig, 'delete', 'egressip', 'checks');
    await until('the address of the node again', 30, () =>
      rig.nodes.every(({ name }) => askFromPod(rig, name, url).startsWith(`${machines[name].ipv4}:`)),
    );
    return `after ${took} ms`;
  } finally {
    end();
  }
}

const namespaceLabel = 'kubernetes.io/metadata.name';

async function egressFirewall(rig: Rig): Promise<string> {
  const { url, end } = await serverOutside(rig);
  const [{ name } = { name: 'n1' as const }] = rig.nodes;
  try {
    must(askFromPod(rig, name, url) !== '', 'no answer without a firewall');
    const to = { cidrSelector: `${machines.out.ipv4}/32` };
    apply(rig, {
      ...{ apiVersion: 'k8s.ovn.org/v1', kind: 'EgressFirewall', metadata: { name: 'default', namespace } },
      spec: { egress: [{ type: 'Deny', to }] },
    });
    const answers = (): boolean => isTrue(() => askFromPod(rig, name, url) !== '');
    await until('no answer', 30, () => !answers());
    call(rig, '--namespace', namespace, 'delete', 'egressfirewall', 'default');
    await until('an answer', 30, answers);
    return '';
  } finally {
    end();
  }
}

/** By a token for flows alone: the kubeconfig has a client certificate, which agents cannot check. */
async function flows(rig: Rig): Promise<string> {
  const [from, to] = rig.nodes.map(({ name }) => podOf(rig, name));
  const [{ name: node } = { name: 'n1' as const }] = rig.nodes;
  const account = `${namespace}:viewer`;
  call(rig, '--namespace', namespace, 'create', 'serviceaccount', 'viewer');
  for (const words of [
    ['clusterrolebinding', '--clusterrole=servicenet-flows-viewer'],
    ['rolebinding', '--clusterrole=view', `--namespace=${namespace}`],
  ]) {
    const [kind = '', ...rest] = words;
    call(rig, 'create', kind, 'servicenet-checks-flows', ...rest, `--serviceaccount=${account}`);
  }
  const [nsenter, ...rest] = onMachine('cp');
  const expectFlow = (outcome: string): string =>
    run(nsenter, [
      ...[...rest, process.execPath, 'src/main.js', 'flows', '--kubeconfig', rig.kubeconfig],
      ...['--service-account', `${namespace}/viewer`, '--timeout', '30s', '-o', 'json', '--expect'],
      `pod/${namespace}/${from?.name} pod/${namespace}/${to?.name}:8080 ${outcome}`,
    ]);
  const answers = (): boolean => isTrue(() => askFromPod(rig, node, `http://${to?.ip}:8080/hostname`) !== '');
  await until('an answer', 30, answers);
  expectFlow('connected');
  apply(rig, {
    ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { name: 'none', namespace } },
    spec: { podSelector: { matchLabels: labels }, policyTypes: ['Ingress'] },
  });
  await until('no answer', 30, () => !answers());
  const denied = expectFlow('dropped');
  call(rig, '--namespace', namespace, 'delete', 'networkpolicy', 'none');
  await until('an answer', 30, answers);
  must(denied.includes(`NetworkPolicy ${namespace}/none`), denied);
  return '';
}

async function router(rig: Rig): Promise<string> {
  const host = 'echo.test';
  const backend = { service: { name: 'echo', port: { number: 80 } } };
  const http = { paths: [{ path: '/', pathType: 'Prefix', backend }] };
  apply(rig, {
    ...{ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata: { name: 'echo', namespace } },
    spec: { ingressClassName: 'servicenet', rules: [{ host, http }] },
  });
  const address = addressOf(rig, 'servicenet-router', 'servicenet-system');
  const took = await timed('an answer by the Ingress', 30, () =>
    ask('far', `http://${host}/hostname`, '--resolve', `${host}:80:${address}`).startsWith('echo-'),
  );
  return `after ${took} ms`;
}

async function traceFromOutside(rig: Rig): Promise<string> {
  const address = addressOf(rig, 'echo');
  await until('an answer', 30, () => ask('out', `http://${address}/hostname`) !== '');
  const owner = rig.nodes.find((node) => announces(node, address));
  const [nsenter, ...rest] = onMachine('cp');
  const program = [process.execPath, 'src/main.js', 'trace', 'outside', `svc/${namespace}/echo:80`];
  const printed = run(nsenter, [...rest, ...program, '--kubeconfig', rig.kubeconfig]);
  must(printed.includes(`${owner?.name} announces it by layer 2`), `${owner?.name}: ${printed}`);
  return owner?.name ?? '';
}

/** The features that had a DaemonSet each, `servicenet-NAME`, with the ports of their metrics. */
const formerAgents = [
  { name: 'node', feature: 'proxy', port: 10249 },
  { name: 'announcer', feature: 'announce', port: 10263 },
  { name: 'policy', feature: 'policy', port: 10264 },
];

/** As docs/deploying.md has it, from DaemonSets with the arguments of then. */
async function upgrade(rig: Rig): Promise<string> {
  const system = ['--namespace', 'servicenet-system'];
  const agent = read(rig, 'daemonset', 'servicenet-agent', ...system);
  const url = `http://${addressOf(rig, 'echo')}/hostname`;
  const former = formerAgents.map(({ name }) => `daemonset/servicenet-${name}`);
  call(rig, ...system, 'delete', 'daemonset', 'servicenet-agent');
  apply(rig, ...formerAgents.map((each) => formerAgent(agent, each)));
  for (const each of former) call(rig, ...system, 'rollout', 'status', each, '--timeout=120s');
  await until('an answer', 60, () => isTrue(() => ask('out', url) !== ''));
  const [{ name: node } = { name: 'n1' as const }] = rig.nodes;
  const probe = new Probe('out', url, `http://${podOf(rig, node).ip}:8080/hostname`);
  await sleep(2000);
  call(rig, ...system, 'delete', ...former);
  call(rig, 'apply', '--server-side', '--kustomize', join(rig.directory, 'overlay'));
  call(rig, ...system, 'rollout', 'status', 'daemonset/servicenet-agent', '--timeout=120s');
  await sleep(5000);
  const { gapMs, failedTwice } = await probe.end();
  must(gapMs <= bounds.planned, `silent for ${gapMs} ms, at most ${bounds.planned} ms are right`);
  return `gap ${gapMs} ms, ${failedTwice} requests failed`;
}

/** @param agent the DaemonSet of all features. */
function formerAgent(agent: unknown, { name, feature, port }: (typeof formerAgents)[number]): object {
  const labels = { 'app.kubernetes.io/name': `servicenet-${name}` };
  const spec = recordAt(agent, 'spec', 'template', 'spec');
  const given = listAt(spec, 'containers').map((each) => recordAt(each));
  const containers = given.map(
    ({ name: own, image, imagePullPolicy, env, envFrom, volumeMounts, securityContext }) => ({
      ...{ name: own, image, imagePullPolicy, env, envFrom, volumeMounts, securityContext },
      args: [
        ...['node', `--features=${feature}`, `--metrics-bind-address=127.0.0.1:${port}`],
        ...(feature === 'announce' ? ['--sysctl-folder=/host/proc/sys'] : [clusterCidrFlag]),
      ],
    }),
  );
  return {
    ...{ apiVersion: 'apps/v1', kind: 'DaemonSet' },
    metadata: { name: `servicenet-${name}`, namespace: 'servicenet-system', labels },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { ...spec, containers } },
    },
  };
}

/** As docs/replacing-kube-proxy.md has it. */
async function wayBack(rig: Rig): Promise<string> {
  const clusterIp = textAt(read(rig, 'service', 'echo', '--namespace', namespace), 'spec', 'clusterIP');
  const patch = [
    {
      op: 'add',
      path: '/spec/updateStrategy',
      value: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '100%' } },
    },
    { op: 'replace', path: '/spec/template/spec/containers/0/args', value: ['node', '--cleanup'] },
  ];
  const agent = ['--namespace', 'servicenet-system', 'daemonset', 'servicenet-agent'];
  call(rig, 'patch', ...agent, '--type=json', '--patch', JSON.stringify(patch));
  const forwarding = (node: Node): boolean =>
    /^table ip6? servicenet$/m.test(node.run('nft', ['list', 'tables']));
  const took = await timed('the tables gone from every node', 120, () => !rig.nodes.some(forwarding));
  const url = `http://${clusterIp}/hostname`;
  const answers = ({ name }: Node): boolean => askFromPod(rig, name, url).startsWith('echo-');
  must(
    rig.nodes.every((node) => !isTrue(() => answers(node))),
    'a cluster IP answers though nothing carries Services',
  );
  startKubeProxy(rig.nodes, join(rig.directory, 'pki'), rig.logs);
  await until('cluster IPs by kube-proxy', 60, () => rig.nodes.every(answers));
  return `clean after ${took} ms`;
}

/** False also for an error. */
function isTrue(done: () => boolean): boolean {
  try {
    return done();
  } catch {
    return false;
  }
}

/** Memory and CPU of what carries Services on the nodes, a line each. */
export function figures({ nodes }: Pick<Rig, 'nodes'>): string[] {
  return nodes.flatMap((node) =>
    node
      .run('ps', ['-eo', 'rss=,cputimes=,args='])
      .split('\n')
      .flatMap((line) => {
        const [, kib = '', seconds = '', of = ''] =
          /^ *(\d+) +(\d+) .*?(main\.js \S+.*|kube-proxy|coredns|metallb-\w+|nft -i)/.exec(line) ?? [];
        if (of === '') return [];
        return [
          `${node.name}  ${Math.round(Number(kib) / 1024)} MiB RSS  ${seconds} s CPU  ${of.slice(0, 80)}`,
        ];
      }),
  );
}
