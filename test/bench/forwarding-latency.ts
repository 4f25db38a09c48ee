/**
 * The time from an EndpointSlice's change to the first packet that follows it: an API server, an agent and the kernel of
 * a namespace. `node test/bench/forwarding-latency.ts [other Services [changes]]`, by default 1000 and 50. Needs unshare
 * and nft, and no root.
 */
import { performance } from 'node:perf_hooks';
import { pino } from 'pino';
import { systemClock } from '../../src/client/clock.ts';
import { InformerFactory } from '../../src/client/informers/shared-informer.ts';
import { forwardingSelectors, NodeAgent } from '../../src/node/forwarding/agent.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';
import { startNetwork } from '../network/support/network.ts';
import { endpointSlice, agentOptions, forwardingOptions } from '../network/support/objects.ts';
import { report } from './report.ts';

const others = Number(process.argv[2] ?? 1000);
const changes = Number(process.argv[3] ?? 50);
const slices = '/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices';

const network = await startNetwork('user', { 'node-1': ['client', 'a-1', 'b-1'] });
const server = await startApiServer({ serviceClusterIpRange: '10.96.0.0/16' });
const stopping = new AbortController();
try {
  const pods = ['a-1', 'b-1'] as const;
  for (const pod of pods) await network.at(pod).machine.serve(8080);
  await send('POST', '/api/v1/nodes', {
    metadata: { name: 'node-1' },
    status: { addresses: [{ type: 'InternalIP', address: network.at('node-1').addresses.IPv4 }] },
  });
  await send('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } });
  for (let i = 0; i < others; i++) await create(`other-${i}`, undefined);
  await create('web', '10.96.0.20');

  const log = pino({ enabled: false });
  const common = { clock: systemClock, random: Math.random, log };
  const { client: transport } = server;
  const informers = new InformerFactory({ ...common, transport, labelSelectors: forwardingSelectors });
  const { serviceCIDRs: _, ...forwarding } = forwardingOptions;
  const agent = new NodeAgent({
    context: { ...common, informers, events: { event: () => undefined }, metrics: new Metrics() },
    host: network.at('node-1').machine.host,
    nodeName: 'node-1',
    forwarding: { ...forwarding, families: ['IPv4'] },
    ...agentOptions,
  });
  const ended = agent.run(stopping.signal);
  informers.start(stopping.signal);
  const client = network.at('client').machine;
  const until = async (pod: string): Promise<void> => {
    for (;;) {
      const outcome = await client.ask('10.96.0.20', 80, { timeout: 1000 });
      if (typeof outcome === 'object' && outcome.name === pod) return;
    }
  };
  await until('a-1');

  const took: number[] = [];
  for (let change = 1; change <= changes; change++) {
    const pod = pods[change % 2] ?? 'a-1';
    const started = performance.now();
    await send('PUT', `${slices}/web-ipv4`, sliceOf('web', pod));
    await until(pod);
    took.push(performance.now() - started);
    await systemClock.sleep(100);
  }
  took.sort((a, b) => a - b);
  const at = (part: number): number => took[Math.min(took.length - 1, Math.floor(took.length * part))] ?? 0;
  await report('forwarding-latency', [
    { name: 'EndpointSlice change → first packet, p50', value: at(0.5), unit: 'ms', budget: '≤ 50 ms' },
    { name: 'EndpointSlice change → first packet, p99', value: at(0.99), unit: 'ms' },
  ]);
  stopping.abort();
  await Promise.all([ended, informers.finished()]);
} finally {
  stopping.abort();
  await server.stop();
  await network.close();
}

async function create(name: string, clusterIP: string | undefined): Promise<void> {
  await send('POST', '/api/v1/namespaces/shop/services', {
    metadata: { name },
    spec: { ports: [{ port: 80, targetPort: 8080 }], ...(clusterIP === undefined ? {} : { clusterIP }) },
  });
  await send('POST', slices, sliceOf(name, 'a-1'));
}

function sliceOf(name: string, pod: string): object {
  return endpointSlice('IPv4', [{ address: network.at(pod).addresses.IPv4, node: 'node-1' }], 8080, name);
}

async function send(method: string, path: string, body: object): Promise<void> {
  const answer = await call(server.client, method, path, { body });
  if (answer.status >= 300) throw new Error(JSON.stringify(answer.body));
}
