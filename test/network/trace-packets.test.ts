import fc from 'fast-check';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/client/clock.ts';
import { InformerFactory } from '../../src/client/informers/shared-informer.ts';
import { readTracedCluster } from '../../src/view/trace-cluster.ts';
import type { ClusterView } from '../../src/network/path/cluster-view.ts';
import { type Trace, tracePath, type TraceSource } from '../../src/network/path/trace.ts';
import { PolicyAgent } from '../../src/node/policy/policy-agent.ts';
import { parseCidr } from '../../src/objects/address.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { type RunningAgents, TestCluster } from './support/cluster.ts';
import { missingFor } from './support/gate.ts';
import type { Located } from './support/network.ts';
import { endpointSlice } from './support/objects.ts';

const missing = missingFor('user');
const nodes = { 'node-1': ['a-1', 'b-1'], 'node-2': ['a-2'], 'node-3': ['a-3'] } as const;
const pods = Object.entries(nodes).flatMap(([node, names]) => names.map((name) => ({ name, node })));
const title = `trace and real packets${missing === '' ? '' : ` (missing: ${missing})`}`;

/** A Service of a random cluster. */
const service = fc.record({
  type: fc.constantFrom('ClusterIP', 'NodePort', 'LoadBalancer', 'LoadBalancer'),
  external: fc.constantFrom('Cluster', 'Local'),
  internal: fc.constantFrom('Cluster', 'Cluster', 'Local'),
  hasExternalIP: fc.boolean(),
  ranges: fc.constantFrom(undefined, ['192.0.2.2/32'], ['10.244.1.0/24', '192.0.2.12/32']),
  endpoints: fc.uniqueArray(fc.constantFrom(...pods.map(({ name }) => name)), { maxLength: 3 }),
});
/** Who may connect to Pods of an app, or where they may connect to. */
const policy = fc.record({
  app: fc.constantFrom('a', 'b'),
  direction: fc.constantFrom('Ingress', 'Egress'),
  peers: fc.constantFrom(
    [],
    [{ podSelector: { matchLabels: { app: 'a' } } }],
    [{ ipBlock: { cidr: '192.0.2.0/24' } }],
    [{ ipBlock: { cidr: '192.0.2.2/32' } }, { podSelector: { matchLabels: { app: 'b' } } }],
  ),
});
const random = fc.record({
  services: fc.array(service, { minLength: 3, maxLength: 3 }),
  policies: fc.array(policy, { maxLength: 2 }),
});
type RandomCluster = typeof random extends fc.Arbitrary<infer T> ? T : never;

describe.skipIf(missing !== '')(title, () => {
  let cluster: TestCluster;
  let agents: RunningAgents;
  const stopping = new AbortController();
  const policyAgents: Promise<void>[] = [];

  beforeAll(async () => {
    cluster = await TestCluster.start(nodes);
    // As in the network of `up`, and nearly everywhere: no route to Services and Pods from outside.
    await cluster.network.script(['ip -n outside route replace unreachable 10.96.0.0/16']);
    for (const { name, node } of pods) {
      await cluster.network.at(name).machine.serve(8080);
      const { IPv4 } = cluster.network.at(name).addresses;
      const path = '/api/v1/namespaces/shop/pods';
      await cluster.send('POST', path, {
        metadata: { name, labels: { app: name.slice(0, 1) } },
        spec: {
          nodeName: node,
          containers: [{ name: 'main', image: 'x', ports: [{ containerPort: 8080 }] }],
        },
      });
      await cluster.send('PATCH', `${path}/${name}/status`, {
        status: { phase: 'Running', podIP: IPv4, podIPs: [{ ip: IPv4 }] },
      });
    }
    agents = cluster.startAgents(Object.keys(nodes));
    const context = {
      ...{ clock: systemClock, random: Math.random, metrics: new Metrics() },
      ...{ log: pino({ level: 'silent' }), events: { event: () => undefined } },
    };
    const informers = new InformerFactory({ ...context, transport: cluster.server.client });
    for (const nodeName of Object.keys(nodes)) {
      const agent = new PolicyAgent({
        ...{ context: { ...context, informers }, host: cluster.network.at(nodeName).machine.host },
        ...{ nodeName, fullSyncMs: 3_600_000, routesPods: true },
      });
      policyAgents.push(agent.run(stopping.signal));
    }
    informers.start(stopping.signal);
  });
  afterAll(async () => {
    stopping.abort();
    await Promise.all(policyAgents);
    await agents.stop();
    await cluster.close();
  });

  it('say the same of random clusters, sources and destinations', async () => {
    const seed = Number(process.env['TRACE_SEED'] ?? Date.now() % 1_000_000);
    console.log(`trace and packets: TRACE_SEED=${seed}`);
    const runs = Number(process.env['TRACE_RUNS'] ?? 4);
    let decided = 0;
    for (const one of fc.sample(random, { seed, numRuns: runs })) {
      const remove = await make(one);
      decided += await compare(one);
      await remove();
    }
    expect(decided).toBeGreaterThan(runs * 40);
  }, 900_000);

  /** Makes the objects, and the routes that a load balancer's announcements are. */
  async function make({ services, policies }: RandomCluster): Promise<() => Promise<void>> {
    const made: string[] = [];
    for (const [index, one] of services.entries()) {
      const name = `web-${index}`;
      const isBalanced = one.type === 'LoadBalancer';
      const isExternal = one.type !== 'ClusterIP' || one.hasExternalIP;
      await cluster.service(name, {
        ...{ type: one.type, clusterIP: `10.96.5.${index + 1}`, internalTrafficPolicy: one.internal },
        ports: [
          { port: 80, targetPort: 8080, ...(one.type === 'ClusterIP' ? {} : { nodePort: 30_080 + index }) },
        ],
        ...(isExternal ? { externalTrafficPolicy: one.external } : {}),
        ...(one.hasExternalIP ? { externalIPs: [`203.0.113.${100 + index}`] } : {}),
        ...(isBalanced && one.ranges !== undefined ? { loadBalancerSourceRanges: one.ranges } : {}),
      });
      made.push(`/api/v1/namespaces/shop/services/${name}`);
      if (isBalanced) {
        const ip = `203.0.113.${index + 1}`;
        await cluster.send('PATCH', `${made.at(-1) ?? ''}/status`, {
          status: { loadBalancer: { ingress: [{ ip }] } },
        });
        const able = one.external === 'Local' ? nodesOf(one.endpoints) : ['node-3'];
        const via = cluster.network.at(able[0] ?? 'node-3').addresses.IPv4;
        await cluster.network.script([`ip -n outside route replace ${ip} via ${via}`]);
      }
      const list = one.endpoints.map((pod) => ({
        address: cluster.network.at(pod).addresses.IPv4,
        node: nodesOf([pod])[0] ?? '',
      }));
      await cluster.slice(endpointSlice('IPv4', list, 8080, name));
      made.push(`/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/${name}-ipv4`);
    }
    for (const [index, { app, direction, peers }] of policies.entries()) {
      const rules = [direction === 'Ingress' ? { from: peers } : { to: peers }];
      const path = '/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies';
      await cluster.send('POST', path, {
        metadata: { name: `policy-${index}` },
        spec: {
          ...{ podSelector: { matchLabels: { app } }, policyTypes: [direction] },
          [direction.toLowerCase()]: peers.length === 0 ? [] : rules,
        },
      });
      made.push(`${path}/policy-${index}`);
    }
    return async () => {
      for (const path of made) await cluster.send('DELETE', path);
    };
  }

  function nodesOf(names: readonly string[]): string[] {
    return pods.filter(({ name }) => names.includes(name)).map(({ node }) => node);
  }

  /** @returns how many connections trace has decided. */
  async function compare({ services }: RandomCluster): Promise<number> {
    const { view } = await readTracedCluster(cluster.server.client, {
      clusterCidrs: [parseCidr('10.244.0.0/16') ?? []].flat(),
      masqueradeAll: undefined,
      nodePortAddresses: 'primary',
    });
    const destinations = [
      ...services.flatMap((one, index) => [
        [`10.96.5.${index + 1}`, 80] as const,
        [`10.96.5.${index + 1}`, 81] as const,
        ...(one.hasExternalIP ? [[`203.0.113.${100 + index}`, 80] as const] : []),
        ...(one.type === 'LoadBalancer' ? [[`203.0.113.${index + 1}`, 80] as const] : []),
        ...(one.type === 'ClusterIP'
          ? []
          : Object.keys(nodes).map(
              (node) => [cluster.network.at(node).addresses.IPv4, 30_080 + index] as const,
            )),
      ]),
      ...['a-1', 'a-2'].map((pod) => [cluster.network.at(pod).addresses.IPv4, 8080] as const),
    ];
    const sources: readonly (readonly [string, Located, TraceSource])[] = [
      ['outside', cluster.network.outside, { kind: 'outside', addresses: ['192.0.2.2'] }],
      ...['node-1', 'node-2'].map(
        (name) => [name, cluster.network.at(name), nodeSource(view, name)] as const,
      ),
      ...['a-1', 'b-1', 'a-3'].map(
        (name) => [name, cluster.network.at(name), podSource(view, name)] as const,
      ),
    ];
    let decided = 0;
    const compareFrom = async ([name, { machine }, source]: (typeof sources)[number]): Promise<void> => {
      for (const [address, port] of destinations) {
        const plan = tracePath(view, source, { address, protocol: 'TCP', port });
        if (plan.reachable === undefined) continue;
        decided++;
        const what = `${name} → ${address}:${port}: ${JSON.stringify(wordsOf(plan))}`;
        // The agents may not have done all of it yet.
        const agrees = async (): Promise<string> => {
          const seen: string[] = [];
          for (let tries = 0; tries < (plan.endpoints.length > 1 ? 6 : 1); tries++) {
            const outcome = await machine.ask(address, port, { timeout: 400 });
            seen.push(typeof outcome === 'object' ? 'connected' : outcome);
          }
          return seen.every((each) => (each === 'connected') === plan.reachable) ? '' : seen.join();
        };
        await expect.poll(agrees, { timeout: 60_000, message: what }).toBe('');
      }
    };
    await Promise.all(sources.map(compareFrom));
    return decided;
  }

  function nodeSource(view: ClusterView, name: string): TraceSource {
    const node = view.node(name);
    if (node === undefined) throw new Error(`no ${name}`);
    return { kind: 'node', node };
  }

  function podSource(view: ClusterView, name: string): TraceSource {
    const pod = view.pod(`shop/${name}`);
    if (pod === undefined) throw new Error(`no ${name}`);
    return { kind: 'pod', pod };
  }

  function wordsOf({ reachable, stages, endpoints }: Trace): readonly unknown[] {
    const denials = [...stages, ...endpoints.flatMap((endpoint) => endpoint.stages)];
    return [reachable, ...denials.filter(({ verdict }) => verdict !== 'pass').map(({ message }) => message)];
  }
});
