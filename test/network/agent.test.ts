import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Transport } from '../../src/client/transport.ts';
import { type Host, ProgramMissingError } from '../../src/host/host.ts';
import { type NodeAgentOptions, OtherProxyError } from '../../src/node/forwarding/agent.ts';
import { NftablesWriter } from '../../src/node/nftables/writer.ts';
import { type RunningAgents, TestCluster } from './support/cluster.ts';
import { missingFor } from './support/gate.ts';
import type { Outcome } from './support/machine-protocol.ts';
import type { TestNetwork } from './support/network.ts';
import { endpointSlice } from './support/objects.ts';
import { processesOf, residentNft } from './support/processes.ts';
import { tellingTransactions } from './support/transactions.ts';

const missing = missingFor('user');
const nodes = ['node-1', 'node-2'] as const;

describe.skipIf(missing !== '')(
  `the agent of a node${missing === '' ? '' : ` (missing: ${missing})`}`,
  () => {
    let cluster: TestCluster;
    let network: TestNetwork;

    beforeAll(async () => {
      cluster = await TestCluster.start({ 'node-1': ['client', 'a-1'], 'node-2': ['b-2'] });
      ({ network } = cluster);
      for (const pod of ['a-1', 'b-2']) await network.at(pod).machine.serve(8080);
    });
    afterAll(() => cluster.close());

    it('brings Services into several nodes from one process, follows what changes, and a restart writes nothing', async () => {
      const running = start(nodes);
      await cluster.service('web', { clusterIP: '10.96.0.20' });
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
      await cluster.service('later', { clusterIP: '10.96.0.21' });
      await endpoints('later', ['b-2']);
      await expectFrom('client', '10.96.0.21', 'b-2');
      await expectFrom('node-2', '10.96.0.21', 'b-2');
      expect(settled.written(), 'one for each node, of what came later').toBeLessThanOrEqual(4);
      await settled.stop();
    });

    it('leaves Services and slices with service-proxy-name to others, and forgets one that gets the label', async () => {
      const running = start(['node-1']);
      await cluster.service('mine', { clusterIP: '10.96.0.30' });
      await endpoints('mine', ['a-1']);
      await cluster.service(
        'theirs',
        { clusterIP: '10.96.0.31' },
        { 'service.kubernetes.io/service-proxy-name': 'other' },
      );
      await endpoints('theirs', ['a-1']);
      await expectFrom('client', '10.96.0.30', 'a-1');
      expect(await ask('client', '10.96.0.31', 500), 'no Service has this cluster IP').toBe('silence');
      const labels = { 'service.kubernetes.io/service-proxy-name': 'other' };
      await cluster.send('PATCH', '/api/v1/namespaces/shop/services/mine', { metadata: { labels } });
      await expect.poll(() => ask('client', '10.96.0.30', 500)).toBe('silence');
      await running.stop();
    });

    it('restores its table when a transaction fails because the table was flushed', async () => {
      const running = start(['node-1']);
      await cluster.service('mended', { clusterIP: '10.96.0.40' });
      await endpoints('mended', ['a-1', 'b-2']);
      await expect.poll(() => ask('client', '10.96.0.40')).toMatchObject({ port: 8080 });
      const { host } = network.at('node-1').machine;
      await host.exec('nft', ['flush', 'map', 'ip', 'servicenet', 'service-ips']);
      await host.exec('nft', ['flush', 'map', 'ip', 'servicenet', 'cluster-endpoints']);
      await endpoints('mended', ['b-2']);
      await expectFrom('client', '10.96.0.40', 'b-2');
      await running.stop();
    });

    it('writes nothing before it knows all Services and all slices (F9)', async () => {
      const earlier = start(['node-1']);
      await cluster.service('kept', { clusterIP: '10.96.0.60' });
      await endpoints('kept', ['a-1']);
      await expectFrom('client', '10.96.0.60', 'a-1');
      await earlier.stop();
      await cluster.service('newer', { clusterIP: '10.96.0.61' });
      await endpoints('newer', ['a-1']);

      const slices = Promise.withResolvers<undefined>();
      const { client } = cluster.server;
      const late = async (path: string): Promise<unknown> =>
        path.includes('endpointslices') && slices.promise;
      const transport: Transport = {
        ...{ server: client.server, close: () => client.close() },
        request: async (method, path, options) => {
          await late(path);
          return client.request(method, path, options);
        },
        stream: async (path, options) => {
          await late(path);
          return client.stream(path, options);
        },
      };
      const running = start(['node-1'], {}, transport);
      await expect
        .poll(() => running.metrics.scrape())
        .toMatch(/servicenet_cache_objects\{resource="services"\} [1-9]/);
      await expectFrom('client', '10.96.0.60', 'a-1');
      expect(running.written()).toBe(0);
      slices.resolve(undefined);
      await expectFrom('client', '10.96.0.61', 'a-1');
      await running.stop();
    });

    it('compares everything with the kernel from time to time, and restores what changed without an event', async () => {
      const running = start(['node-1'], { fullSyncMs: 500 });
      await cluster.service('damaged', { clusterIP: '10.96.0.70' });
      await endpoints('damaged', ['a-1']);
      await expectFrom('client', '10.96.0.70', 'a-1');
      const { host } = network.at('node-1').machine;
      const element = '{ 10.96.0.70 . tcp . 80 }';
      const gone = await host.exec('nft', ['delete', 'element', 'ip', 'servicenet', 'service-ips', element]);
      expect(gone.stderr).toBe('');
      await expectFrom('client', '10.96.0.70', 'a-1');
      await running.stop();
    });

    it('changes a Service by the nft that stays, and ends it with itself', async () => {
      const { host } = network.at('node-1').machine;
      const running = start(['node-1']);
      await cluster.service('changed', { clusterIP: '10.96.0.71' });
      for (const pod of ['a-1', 'b-2', 'a-1']) {
        await endpoints('changed', [pod]);
        await expectFrom('client', '10.96.0.71', pod);
      }
      expect(await processesOf(host, residentNft)).toHaveLength(1);
      await running.stop();
      expect(await processesOf(host, residentNft)).toEqual([]);
    });

    it('does not start beside kube-proxy without the flag, and removes all that it made', async () => {
      const { host } = network.at('node-2').machine;
      await host.exec('nft', ['add', 'table', 'ip', 'kube-proxy']);
      await host.exec('nft', ['add', 'chain', 'ip', 'kube-proxy', 'services']);
      await expect(cluster.startAgents(['node-2']).ended).rejects.toThrow(OtherProxyError);
      await host.exec('nft', ['delete', 'table', 'ip', 'kube-proxy']);

      await new NftablesWriter({ host }).cleanUp();
      expect((await host.exec('nft', ['list', 'ruleset'])).stdout).toBe('');
    });

    it('does not start where nft is missing, and names its package', async () => {
      const { host } = network.at('node-2').machine;
      const exec: Host['exec'] = (program, ...rest) =>
        program === 'nft' ? Promise.reject(new ProgramMissingError(program)) : host.exec(program, ...rest);
      const agents = cluster.startAgents(['node-2'], {}, () => ({ ...host, exec }));
      await expect(agents.ended).rejects.toThrow(
        'there is no program nft: install the package nftables (1.0.1 or later)',
      );
    });

    it('names what is odd once: in the log, and in an Event on the Service', async () => {
      const running = start(nodes);
      await cluster.service('first', { clusterIP: '10.96.0.50', externalIPs: ['203.0.113.50'] });
      await cluster.service('second', { clusterIP: '10.96.0.51', externalIPs: ['203.0.113.50'] });
      await endpoints('second', ['a-1']);
      const ownEvents = (): string[] => running.events.filter((event) => event.includes('203.0.113.50'));
      await expect.poll(ownEvents).toHaveLength(nodes.length);
      await expectFrom('client', '10.96.0.51', 'a-1');
      await endpoints('second', ['b-2']);
      await expectFrom('client', '10.96.0.51', 'b-2');
      expect(ownEvents()).toEqual(
        nodes.map(() => 'DestinationConflict second: externalIP 203.0.113.50 TCP 80 belongs to shop/first'),
      );
      expect(running.logged.filter((line) => line.includes('"DestinationConflict"'))).toHaveLength(2);
      await running.stop();
    });

    it('with --detect-local-mode=NodeCIDR knows the Pods of its node by the Node object, from when it has them', async () => {
      const running = start(['node-1'], {
        forwarding: {
          families: ['IPv4'],
          masqueradeAll: false,
          nodePortAddresses: 'primary',
          podDetection: { by: 'nodeCIDR' },
          allowExternalIPs: true,
        },
      });
      await cluster.service('seen', { clusterIP: '10.96.0.80' });
      await endpoints('seen', ['a-1']);
      const clientSeen = async (from: string): Promise<unknown> => {
        const outcome = await ask(from, '10.96.0.80', 1000);
        return typeof outcome === 'string' ? outcome : outcome.client;
      };
      const own = (name: string): string => network.at(name).addresses.IPv4;
      // While no Pod can be recognised, nothing is masqueraded.
      await expect.poll(() => clientSeen('outside')).toBe(own('outside'));
      const podCIDRs = ['10.244.1.0/24'];
      await cluster.send('PATCH', '/api/v1/nodes/node-1', { spec: { podCIDR: podCIDRs[0], podCIDRs } });
      // The node's address on the Pod's link.
      await expect.poll(() => clientSeen('outside')).toBe('10.244.1.1');
      expect(await clientSeen('client')).toBe(own('client'));
      await running.stop();
    });

    it('names the package where there is no nft', async () => {
      const { host } = network.at('node-2').machine;
      const exec: Host['exec'] = (program, ...rest) => host.exec(`no-${program}`, ...rest);
      const running = cluster.startAgents(['node-2'], {}, () => ({ ...host, exec }));
      await expect(running.ended).rejects.toThrow('package nftables');
    });

    /** Agents, and the number of transactions that their hosts were given. */
    function start(
      names: readonly string[],
      change: Partial<NodeAgentOptions> = {},
      transport?: Transport,
    ): RunningAgents & { readonly written: () => number } {
      let written = 0;
      const counting = (name: string): Host =>
        tellingTransactions(network.at(name).machine.host, () => written++);
      return { ...cluster.startAgents(names, change, counting, transport), written: () => written };
    }

    /** Makes the Service's one slice what is given. */
    async function endpoints(name: string, pods: readonly string[]): Promise<void> {
      const located = pods.map((pod) => ({ address: network.at(pod).addresses.IPv4, node: 'any' }));
      await cluster.slice(endpointSlice('IPv4', located, 8080, name));
    }

    function ask(from: string, address: string, timeout = 20_000): Promise<Outcome> {
      return network.at(from).machine.ask(address, 80, { timeout });
    }

    async function expectFrom(from: string, address: string, pod: string): Promise<void> {
      await expect.poll(() => ask(from, address, 1000)).toMatchObject({ name: pod });
    }
  },
);
