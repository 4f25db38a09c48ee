import { pino } from 'pino';
import { systemClock } from '../../../src/client/clock.ts';
import { InformerFactory } from '../../../src/client/informers/shared-informer.ts';
import type { Transport } from '../../../src/client/transport.ts';
import type { Host } from '../../../src/host/host.ts';
import { forwardingSelectors, NodeAgent, type NodeAgentOptions } from '../../../src/node/forwarding/agent.ts';
import type { EndpointSlice } from '../../../src/objects/types/discovery.generated.ts';
import { Metrics } from '../../../src/telemetry/metrics.ts';
import { startApiServer, type TestServer, type TestServerOptions } from '../../../src/testing/index.ts';
import { call } from '../../support/test-server.ts';
import { startNetwork, type TestNetwork } from './network.ts';
import { agentOptions, forwardingOptions } from './objects.ts';

/** Agents at work, and how to stop them. */
export interface RunningAgents {
  /** Events as `reason Service: message`, and log lines as `level message`. */
  readonly events: string[];
  readonly logged: string[];
  readonly metrics: Metrics;
  /** Rejects where an agent does not start. */
  readonly ended: Promise<unknown>;
  stop(): Promise<void>;
}

/** The network of `network.ts`, with a Node object for each node and an API server outside of it. */
export class TestCluster {
  readonly network: TestNetwork;
  readonly server: TestServer;

  private constructor(network: TestNetwork, server: TestServer) {
    this.network = network;
    this.server = server;
  }

  /** @param nodes the names of each node's Pods. */
  static async start(
    nodes: Readonly<Record<string, readonly string[]>>,
    options: TestServerOptions = {},
  ): Promise<TestCluster> {
    const network = await startNetwork('user', nodes);
    try {
      return await TestCluster.on(network, Object.keys(nodes), options);
    } catch (error) {
      await network.close();
      throw error;
    }
  }

  /** A cluster of some machines of a network. */
  static async on(
    network: TestNetwork,
    nodes: readonly string[],
    options: TestServerOptions,
  ): Promise<TestCluster> {
    const cluster = new TestCluster(
      network,
      await startApiServer({ serviceClusterIpRange: '10.96.0.0/16', ...options }),
    );
    for (const name of nodes) {
      const { IPv4 } = network.at(name).addresses;
      await cluster.send('POST', '/api/v1/nodes', {
        ...{ apiVersion: 'v1', kind: 'Node', metadata: { name } },
        status: { addresses: [{ type: 'InternalIP', address: IPv4 }] },
      });
    }
    await cluster.send('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } });
    return cluster;
  }

  /** @throws {Error} where the server refuses. */
  async send(method: string, path: string, body?: object): Promise<void> {
    const patch = method === 'PATCH' ? { contentType: 'application/merge-patch+json' } : {};
    const content = body === undefined ? {} : { body };
    const answer = await call(this.server.client, method, path, { ...content, ...patch });
    if (answer.status >= 300) throw new Error(JSON.stringify(answer.body));
  }

  /** Creates a Service `shop/<name>`, of port 80 to 8080 unless the spec says otherwise. */
  async service(name: string, spec: object, labels: Record<string, string> = {}): Promise<void> {
    await this.send('POST', '/api/v1/namespaces/shop/services', {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name, labels } },
      spec: { ports: [{ port: 80, targetPort: 8080 }], ...spec },
    });
  }

  /** Creates the slice, or makes the one that there is like it. */
  async slice(slice: EndpointSlice): Promise<void> {
    const path = '/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices';
    const own = `${path}/${slice.metadata.name ?? ''}`;
    const { status } = await call(this.server.client, 'GET', own);
    await this.send(status === 404 ? 'POST' : 'PUT', status === 404 ? path : own, slice);
  }

  /**
   * Starts the agents of nodes in one process, on shared informers.
   *
   * @param change of each agent's options.
   */
  startAgents(
    nodes: readonly string[],
    change: Partial<NodeAgentOptions> = {},
    hostOf: (node: string) => Host = (node) => this.network.at(node).machine.host,
    transport: Transport = this.server.client,
  ): RunningAgents {
    const stopping = new AbortController();
    const events: string[] = [];
    const logged: string[] = [];
    const log = pino(
      { base: null, timestamp: false, formatters: { level: (level) => ({ level }) } },
      { write: (line: string) => logged.push(line) },
    );
    const metrics = new Metrics();
    const common = { clock: systemClock, random: Math.random, log };
    const informers = new InformerFactory({
      ...common,
      metrics,
      transport,
      labelSelectors: forwardingSelectors,
    });
    const recorder: NodeAgentOptions['context']['events'] = {
      event: ({ metadata }, _, reason, message) =>
        events.push(`${reason} ${metadata.name ?? ''}: ${message}`),
    };
    const { serviceCIDRs: _, ...forwarding } = forwardingOptions;
    const ended = nodes.map((nodeName) =>
      new NodeAgent({
        context: { ...common, informers, events: recorder, metrics },
        host: hostOf(nodeName),
        nodeName,
        forwarding: { ...forwarding, families: ['IPv4'] },
        ...agentOptions,
        ...change,
      }).run(stopping.signal),
    );
    informers.start(stopping.signal);
    const allEnded = Promise.all(ended).finally(() => stopping.abort());
    // Who does not expect it hears of it from stop().
    allEnded.catch(() => undefined);
    return {
      ...{ events, logged, metrics, ended: allEnded },
      stop: async () => {
        stopping.abort();
        await Promise.all([allEnded, informers.finished()]);
      },
    };
  }

  async close(): Promise<void> {
    await this.server.stop();
    await this.network.close();
  }
}
