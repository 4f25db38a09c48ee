import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { call } from '../support/test-server.ts';
import { type Host, ProgramMissingError } from '../../src/host/host.ts';
import { type RunningAgents, TestCluster } from './support/cluster.ts';
import { ApiRelay, NodeProgram } from './support/node-program.ts';
import { missingFor, missingProgram } from './support/gate.ts';
import type { Outcome } from './support/machine-protocol.ts';
import { endpointSlice, type TestEndpoint } from './support/objects.ts';

const missing = [missingFor('user'), missingProgram('conntrack', 'conntrack')]
  .filter((what) => what !== '')
  .join(', ');

/** Names as those of Kubernetes' e2e tests (test/e2e/network/conntrack.go). */
describe.skipIf(missing !== '')(`conntrack${missing === '' ? '' : ` (missing: ${missing})`}`, () => {
  let cluster: TestCluster;

  beforeAll(async () => {
    cluster = await TestCluster.start({ 'node-1': ['client', 'a-1', 'b-1'] });
    // No flow is forgotten by itself meanwhile.
    for (const name of ['udp_timeout', 'udp_timeout_stream']) {
      await host().sysctl.set(`net/netfilter/nf_conntrack_${name}`, '3600');
    }
    for (const pod of ['a-1', 'b-1']) {
      await cluster.network.at(pod).machine.serve(5353, 'UDP');
      await cluster.network.at(pod).machine.serve(8080, 'TCP');
    }
  });
  afterAll(() => cluster.close());

  it('should be able to preserve UDP traffic when server pod cycles for a ClusterIP service', async () => {
    const agents = cluster.startAgents(['node-1']);
    await udpService('cycling', { clusterIP: '10.96.1.1' });
    await endpoints('cycling', [ready('a-1')]);
    const ask = (): Promise<Outcome> => one('client', '10.96.1.1', 53, 4001);
    await expect.poll(ask).toMatchObject({ name: 'a-1' });
    await endpoints('cycling', [ready('b-1')]);
    await expect.poll(ask).toMatchObject({ name: 'b-1' });
    expect(await agents.metrics.scrape()).toMatch(
      /kubeproxy_conntrack_reconciler_deleted_entries_total\{ip_family="IPv4"\} [1-9]/,
    );
    await agents.stop();
  });

  it('should be able to preserve UDP traffic when server pod cycles for a NodePort service', async () => {
    const agents = cluster.startAgents(['node-1']);
    await udpService('node-port', { clusterIP: '10.96.1.2', type: 'NodePort' }, 31_053);
    await endpoints('node-port', [ready('a-1')]);
    const { IPv4 } = cluster.network.at('node-1').addresses;
    const ask = (): Promise<Outcome> => one('outside', IPv4, 31_053, 4002);
    await expect.poll(ask).toMatchObject({ name: 'a-1' });
    await endpoints('node-port', [ready('b-1')]);
    await expect.poll(ask).toMatchObject({ name: 'b-1' });
    await agents.stop();
  });

  it('should be able to preserve UDP traffic when initial unready endpoints get ready', async () => {
    const agents = cluster.startAgents(['node-1']);
    // No agent knows the address yet: the flow is tracked as it is, to nowhere.
    expect(await one('client', '10.96.1.3', 53, 4003)).toBe('silence');
    await udpService('starting', { clusterIP: '10.96.1.3' });
    await endpoints('starting', [{ ...ready('a-1'), ready: false, serving: false }]);
    await expect.poll(() => one('client', '10.96.1.3', 53, 4003)).toBe('refused');
    await endpoints('starting', [ready('a-1')]);
    await expect.poll(() => one('client', '10.96.1.3', 53, 4003)).toMatchObject({ name: 'a-1' });
    await agents.stop();
  });

  it('leaves flows of endpoints that terminate and still serve, flows of other Services, and all TCP', async () => {
    const agents = cluster.startAgents(['node-1']);
    await udpService('leaving', { clusterIP: '10.96.1.4' });
    await endpoints('leaving', [ready('a-1')]);
    await cluster.service('tcp', { clusterIP: '10.96.1.5' });
    await cluster.slice(endpointSlice('IPv4', [ready('a-1')], 8080, 'tcp'));
    await expect.poll(() => one('client', '10.96.1.4', 53, 4004)).toMatchObject({ name: 'a-1' });
    await expect
      .poll(() => cluster.network.at('client').machine.ask('10.96.1.5', 80))
      .toMatchObject({ name: 'a-1' });
    const tracked = async (protocol: string): Promise<number> => {
      const { stdout } = await host().exec('conntrack', ['-L', '-p', protocol]);
      return stdout.split('\n').filter((line) => /dst=10\.96\.1\.[45] /.test(line)).length;
    };
    const tcp = await tracked('tcp');
    expect(tcp).toBeGreaterThan(0);
    const terminating = { ...ready('a-1'), ready: false, serving: true, terminating: true };
    await endpoints('leaving', [terminating, ready('b-1')]);
    await cluster.slice(endpointSlice('IPv4', [ready('b-1')], 8080, 'tcp'));
    const asked = { protocol: 'UDP', timeout: 500 } as const;
    await expect
      .poll(() => cluster.network.at('client').machine.ask('10.96.1.4', 53, asked))
      .toMatchObject({ name: 'b-1' });
    expect(await one('client', '10.96.1.4', 53, 4004), 'the old flow').toMatchObject({ name: 'a-1' });
    expect(await tracked('tcp')).toBe(tcp);
    await agents.stop();
  });

  describe('forgets the flows to an endpoint', () => {
    const port = { port: 53, targetPort: 5353, protocol: 'UDP' };
    const spec = {
      ...{ clusterIP: '10.96.1.7', externalIPs: ['203.0.113.7'], type: 'LoadBalancer' },
      ...{ ports: [{ ...port, nodePort: 31_054 }], sessionAffinity: 'ClientIP' },
    };
    const load = { loadBalancer: { ingress: [{ ip: '203.0.113.8' }] } };
    const path = '/api/v1/namespaces/shop/services/going';
    let agents: RunningAgents;
    let fromPort = 4100;

    beforeEach(async () => {
      agents = cluster.startAgents(['node-1']);
      await cluster.service('going', spec);
      await cluster.send('PATCH', `${path}/status`, { status: load });
      await endpoints('going', [ready('a-1')]);
      fromPort++;
      const { IPv4 } = cluster.network.at('node-1').addresses;
      for (const [from, address, number] of [
        ['client', '10.96.1.7', 53],
        ['outside', '203.0.113.7', 53],
        ['outside', '203.0.113.8', 53],
        ['outside', IPv4, 31_054],
      ] as const) {
        await expect.poll(() => one(from, address, number, fromPort)).toMatchObject({ name: 'a-1' });
      }
      expect(await translated()).toHaveLength(4);
    });
    afterEach(async () => {
      await agents.stop();
      await call(cluster.server.client, 'DELETE', path);
    });

    it('when it was the last one', async () => {
      await endpoints('going', []);
      await expect.poll(translated).toEqual([]);
      expect(await one('client', '10.96.1.7', 53, fromPort)).toBe('refused');
    });

    it('when the last one no longer serves', async () => {
      await endpoints('going', [{ ...ready('a-1'), ready: false, serving: false, terminating: true }]);
      await expect.poll(translated).toEqual([]);
    });

    it('when its Service goes', async () => {
      await cluster.send('DELETE', path);
      await expect.poll(translated).toEqual([]);
    });

    it('when its Service goes at the moment at which the node changes', async () => {
      await Promise.all([
        cluster.send('PATCH', '/api/v1/nodes/node-1', {
          metadata: { labels: { 'topology.kubernetes.io/zone': `z-${fromPort}` } },
        }),
        cluster.send('DELETE', path),
      ]);
      await expect.poll(translated).toEqual([]);
      expect(await one('client', '10.96.1.7', 53, fromPort)).toBe('silence');
    });

    it('when its port gets another number', async () => {
      await cluster.send('PATCH', path, { spec: { ports: [{ ...port, port: 54, nodePort: 31_055 }] } });
      await expect.poll(translated).toEqual([]);
    });

    it('when an external IP goes, and leaves the others', async () => {
      await cluster.send('PATCH', path, { spec: { externalIPs: null } });
      await expect.poll(translated).toHaveLength(3);
      expect((await translated()).filter((line) => line.includes('dst=203.0.113.7'))).toEqual([]);
    });

    it('when a load balancer takes its address back', async () => {
      await cluster.send('PATCH', `${path}/status`, { status: { loadBalancer: { ingress: null } } });
      await expect.poll(translated).toHaveLength(3);
      expect((await translated()).filter((line) => line.includes('dst=203.0.113.8'))).toEqual([]);
    });

    it('when the node port goes', async () => {
      await cluster.send('PATCH', path, {
        spec: { type: 'ClusterIP', ports: [port], externalTrafficPolicy: null },
      });
      await expect
        .poll(async () => (await translated()).filter((line) => line.includes('dport=31054')))
        .toEqual([]);
    });

    it.each([
      ['', {}],
      [', and the next one has other rules', { markMask: 0x00ff_0000 }],
    ])('when its Service went while no agent ran%s', async (_, options) => {
      await agents.stop();
      await cluster.send('DELETE', path);
      agents = cluster.startAgents(['node-1'], options);
      await expect.poll(translated).toEqual([]);
    });

    it('when the kernel is cleaned up', async () => {
      await agents.stop();
      const relay = await ApiRelay.open(cluster.network.at('node-1').machine, cluster.server.kubeconfig);
      const { machine } = cluster.network.at('node-1');
      const { exitCode, stderr } = await new NodeProgram(machine, relay, 'cleaning', '--cleanup').ended;
      await relay.close();
      expect(exitCode, stderr).toBe(0);
      expect(await translated()).toEqual([]);
    });

    /** The flows that lead to an endpoint of the Service. */
    async function translated(): Promise<string[]> {
      const { stdout } = await host().exec('conntrack', ['-L', '-p', 'udp']);
      const answers = `src=${cluster.network.at('a-1').addresses.IPv4} `;
      return stdout
        .split('\n')
        .filter((line) => line.includes(`sport=${fromPort} `) && line.includes(answers));
    }
  });

  it('names the package once where there is no conntrack, and goes on', async () => {
    const exec: Host['exec'] = (program, ...rest) => {
      if (program === 'conntrack') return Promise.reject(new ProgramMissingError(program));
      return host().exec(program, ...rest);
    };
    const agents = cluster.startAgents(['node-1'], {}, () => ({ ...host(), exec }));
    await udpService('without', { clusterIP: '10.96.1.6' });
    for (const pod of ['a-1', 'b-1', 'a-1']) {
      await endpoints('without', [ready(pod)]);
      await expect
        .poll(() =>
          cluster.network.at('client').machine.ask('10.96.1.6', 53, { protocol: 'UDP', timeout: 1000 }),
        )
        .toMatchObject({ name: pod });
    }
    expect(agents.logged.filter((line) => line.includes('install the package conntrack'))).toHaveLength(1);
    await agents.stop();
  });

  function host(): Host {
    return cluster.network.at('node-1').machine.host;
  }

  /** One flow: the client keeps its source port. */
  function one(from: string, address: string, port: number, fromPort: number): Promise<Outcome> {
    const { machine } = from === 'outside' ? cluster.network.outside : cluster.network.at(from);
    return machine.ask(address, port, { protocol: 'UDP', fromPort, timeout: 500 });
  }

  async function udpService(name: string, spec: object, nodePort?: number): Promise<void> {
    const port = { port: 53, targetPort: 5353, protocol: 'UDP' };
    await cluster.service(name, { ...spec, ports: [nodePort === undefined ? port : { ...port, nodePort }] });
  }

  function endpoints(name: string, list: readonly TestEndpoint[]): Promise<void> {
    return cluster.slice(endpointSlice('IPv4', list, 5353, name, ['UDP']));
  }

  function ready(pod: string): TestEndpoint {
    return { address: cluster.network.at(pod).addresses.IPv4, node: 'node-1' };
  }
});
