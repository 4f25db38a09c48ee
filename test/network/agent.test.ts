import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/client/clock.ts';
import { InformerFactory } from '../../src/client/informer-factory.ts';
import type { Host } from '../../src/host/host.ts';
import { forwardingSelectors, NodeAgent, OtherProxyError } from '../../src/node/agent.ts';
import { NftablesWriter } from '../../src/node/nftables/nftables-writer.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';
import { missingFor } from './support/gate.ts';
import type { Outcome } from './support/machine-protocol.ts';
import { startNetwork, type TestNetwork } from './support/network.ts';
import { endpointSlice, forwardingOptions } from './support/objects.ts';

const missing = missingFor('user');
const nodes = ['node-1', 'node-2'] as const;

/** Agents at work, and how to stop them. */
interface Running {
  stop(): Promise<void>;
  /** Transactions that their hosts were given. */
  readonly written: () => number;
}

describe.skipIf(missing !== '')(
  `the agent of a node${missing === '' ? '' : ` (missing: ${missing})`}`,
  () => {
    let network: TestNetwork;
    let server: TestServer;

    beforeAll(async () => {
      network = await startNetwork('user', { 'node-1': ['client', 'a-1'], 'node-2': ['b-2'] });
      for (const pod of ['a-1', 'b-2']) await network.at(pod).machine.serve(8080);
      server = await startApiServer({ serviceClusterIpRange: '10.96.0.0/16' });
      for (const name of nodes) {
        const { IPv4 } = network.at(name).addresses;
        await send('POST', '/api/v1/nodes', {
          ...{ apiVersion: 'v1', kind: 'Node', metadata: { name } },
          status: { addresses: [{ type: 'InternalIP', address: IPv4 }] },
        });
      }
      await send('POST', '/api/v1/namespaces', {
        ...{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } },
      });
    });
    afterAll(async () => {
      await server.stop();
      await network.close();
    });

    it('brings Services into several nodes from one process, follows what changes, and a restart writes nothing', async () => {
      const running = start(nodes);
      await service('web', '10.96.0.20', {});
      await endpoints('web', ['a-1']);
      await expectFrom('client', '10.96.0.20', 'a-1');
      await expectFrom('node-2', '10.96.0.20', 'a-1');

      await endpoints('web', ['b-2']);
      await expectFrom('client', '10.96.0.20', 'b-2');
      await endpoints('web', []);
      await expect.poll(() => ask('client', '10.96.0.20')).toBe('refused');
      await running.stop();
      await endpoints('web', ['a-1']);
      expect(await ask('client', '10.96.0.20'), 'what is written stays').toBe('refused');

      const again = start(nodes);
      await expectFrom('client', '10.96.0.20', 'a-1');
      await again.stop();
      const settled = start(nodes);
      await service('later', '10.96.0.21', {});
      await endpoints('later', ['b-2']);
      await expectFrom('client', '10.96.0.21', 'b-2');
      await expectFrom('node-2', '10.96.0.21', 'b-2');
      expect(settled.written(), 'one for each node, of what came later').toBeLessThanOrEqual(4);
      await settled.stop();
    });

    it('leaves Services and slices with service-proxy-name to others, and forgets one that gets the label', async () => {
      const running = start(['node-1']);
      await service('mine', '10.96.0.30', {});
      await endpoints('mine', ['a-1']);
      await service('theirs', '10.96.0.31', { 'service.kubernetes.io/service-proxy-name': 'other' });
      await endpoints('theirs', ['a-1']);
      await expectFrom('client', '10.96.0.30', 'a-1');
      expect(await ask('client', '10.96.0.31', 500), 'nobody has this cluster IP').toBe('silence');
      const labels = { 'service.kubernetes.io/service-proxy-name': 'other' };
      await send('PATCH', '/api/v1/namespaces/shop/services/mine', { metadata: { labels } });
      await expect.poll(() => ask('client', '10.96.0.30', 500)).toBe('silence');
      await running.stop();
    });

    it('mends its table when a transaction fails because somebody flushed it', async () => {
      const running = start(['node-1']);
      await service('mended', '10.96.0.40', {});
      await endpoints('mended', ['a-1', 'b-2']);
      await expect.poll(() => ask('client', '10.96.0.40')).toMatchObject({ port: 8080 });
      const { host } = network.at('node-1').machine;
      await host.exec('nft', ['flush', 'map', 'ip', 'servicenet', 'service-ips']);
      await host.exec('nft', ['flush', 'map', 'ip', 'servicenet', 'cluster-endpoints']);
      await endpoints('mended', ['b-2']);
      await expectFrom('client', '10.96.0.40', 'b-2');
      await running.stop();
    });

    it('does not start beside kube-proxy unless told to, and takes away all that it made', async () => {
      const { host } = network.at('node-2').machine;
      await host.exec('nft', ['add', 'table', 'ip', 'kube-proxy']);
      await host.exec('nft', ['add', 'chain', 'ip', 'kube-proxy', 'services']);
      await expect(agent('node-2', host).run(new AbortController().signal)).rejects.toThrow(OtherProxyError);
      await host.exec('nft', ['delete', 'table', 'ip', 'kube-proxy']);

      await new NftablesWriter({ host }).cleanUp();
      expect((await host.exec('nft', ['list', 'ruleset'])).stdout).toBe('');
    });

    it('names the package where there is no nft', async () => {
      const { host } = network.at('node-2').machine;
      const without: Host = { ...host, exec: (program, ...rest) => host.exec(`no-${program}`, ...rest) };
      await expect(agent('node-2', without).run(new AbortController().signal)).rejects.toThrow(
        'package nftables',
      );
    });

    function agent(nodeName: string, host: Host, informers = factory()): NodeAgent {
      const { serviceCIDRs: _, ...forwarding } = forwardingOptions;
      return new NodeAgent({
        context: { informers, clock: systemClock, random: Math.random, log, metrics: new Metrics() },
        host,
        nodeName,
        forwarding: { ...forwarding, families: ['IPv4'] },
      });
    }

    function factory(): InformerFactory {
      const { client: transport } = server;
      const labelSelectors = forwardingSelectors;
      return new InformerFactory({ transport, clock: systemClock, random: Math.random, log, labelSelectors });
    }

    /** Agents on shared informers. */
    function start(names: readonly string[]): Running {
      const stopping = new AbortController();
      const informers = factory();
      let written = 0;
      const ended = names.map((name) => {
        const { host } = network.at(name).machine;
        const counting: Host = {
          ...host,
          exec: (program, ...rest) => {
            if (program === 'sh') written++;
            return host.exec(program, ...rest);
          },
        };
        return agent(name, counting, informers).run(stopping.signal);
      });
      informers.start(stopping.signal);
      return {
        written: () => written,
        stop: async () => {
          stopping.abort();
          await Promise.all([...ended, informers.finished()]);
        },
      };
    }

    async function send(method: string, path: string, body: object): Promise<void> {
      const patch = method === 'PATCH' ? { contentType: 'application/merge-patch+json' } : {};
      const answer = await call(server.client, method, path, { body, ...patch });
      if (answer.status >= 300) throw new Error(JSON.stringify(answer.body));
    }

    async function service(name: string, clusterIP: string, labels: Record<string, string>): Promise<void> {
      await send('POST', '/api/v1/namespaces/shop/services', {
        ...{ apiVersion: 'v1', kind: 'Service', metadata: { name, labels } },
        spec: { clusterIP, ports: [{ port: 80, targetPort: 8080 }] },
      });
    }

    /** Makes the Service's one slice what is given. */
    async function endpoints(name: string, pods: readonly string[]): Promise<void> {
      const located = pods.map((pod) => ({ address: network.at(pod).addresses.IPv4, node: 'any' }));
      const slice = endpointSlice('IPv4', located, 8080, name);
      const path = '/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices';
      const { status } = await call(server.client, 'GET', `${path}/${name}-ipv4`);
      if (status === 404) await send('POST', path, slice);
      else await send('PUT', `${path}/${name}-ipv4`, slice);
    }

    function ask(from: string, address: string, timeout = 20_000): Promise<Outcome> {
      return network.at(from).machine.ask(address, 80, { timeout });
    }

    async function expectFrom(from: string, address: string, pod: string): Promise<void> {
      await expect.poll(() => ask(from, address, 1000)).toMatchObject({ name: pod });
    }
  },
);

const log = pino({ enabled: false });
