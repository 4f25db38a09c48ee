import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/client/clock.ts';
import { InformerFactory } from '../../../src/client/informers/shared-informer.ts';
import { type Host, ProgramMissingError } from '../../../src/host/host.ts';
import { PolicyAgent, type PolicyAgentOptions } from '../../../src/node/policy/policy-agent.ts';
import { textAt } from '../../../src/objects/json.ts';
import { Metrics } from '../../../src/telemetry/metrics.ts';
import { TestCluster } from '../support/cluster.ts';
import { missingFor } from '../support/gate.ts';
import { Stopwatch } from '../../support/reference-time.ts';

const missing = missingFor('user');
const patience = { timeout: 60_000 };

describe.skipIf(missing !== '')(
  `the agent of policies${missing === '' ? '' : ` (missing: ${missing})`}`,
  () => {
    let cluster: TestCluster;
    beforeAll(async () => {
      cluster = await TestCluster.start({ 'node-1': ['a-1'], 'node-2': ['b-2'] });
      await cluster.send('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition);
      for (const name of ['a-1', 'b-2']) {
        await cluster.network.at(name).machine.serve(8080);
        const { IPv4, IPv6 } = cluster.network.at(name).addresses;
        const path = '/api/v1/namespaces/shop/pods';
        const nodeName = `node-${name.slice(-1)}`;
        await cluster.send('POST', path, {
          metadata: { name },
          spec: { nodeName, containers: [{ name: 'main', image: 'x' }] },
        });
        const podIPs = [{ ip: IPv4 }, { ip: IPv6 }];
        await cluster.send('PATCH', `${path}/${name}/status`, {
          status: { phase: 'Running', podIP: IPv4, podIPs },
        });
      }
      await cluster.network.at('node-2').machine.serve(8080);
    });
    afterAll(() => cluster.close());

    /** An agent on node-1, and the lines of its log. */
    function startAgent(options: Partial<PolicyAgentOptions> = {}) {
      const lines: unknown[] = [];
      const context = {
        ...{ clock: systemClock, random: Math.random, metrics: new Metrics() },
        log: pino({ level: 'warn' }, { write: (line: string) => lines.push(JSON.parse(line)) }),
        events: { event: () => undefined },
      };
      const informers = new InformerFactory({ ...context, transport: cluster.server.client });
      const stopping = new AbortController();
      const agent = new PolicyAgent({
        ...{ context: { ...context, informers }, host: cluster.network.at('node-1').machine.host },
        ...{ nodeName: 'node-1', fullSyncMs: 3_600_000, ...options },
      });
      const running = agent.run(stopping.signal);
      informers.start(stopping.signal);
      return {
        ...{ lines, running },
        stop: async () => {
          stopping.abort();
          await informers.finished();
          await running;
        },
      };
    }

    const ask = async (destination: string, timeout = 1000): Promise<boolean> => {
      const { IPv4 } = cluster.network.at(destination).addresses;
      return typeof (await cluster.network.at('a-1').machine.ask(IPv4, 8080, { timeout })) === 'object';
    };

    it.each([
      ['the table', 'delete table inet servicenet-policy'],
      ['a chain', 'flush chain inet servicenet-policy forward-egress'],
      ['a map', 'flush map inet servicenet-policy egress-4'],
    ])('puts right what others do to its table, with one line in the log: %s', async (_, command) => {
      const agent = startAgent();
      const path = '/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies';
      const spec = { podSelector: {}, policyTypes: ['Egress'] };
      await cluster.send('POST', path, { metadata: { name: 'none' }, spec });
      try {
        await expect.poll(() => ask('b-2', 300), patience).toBe(false);
        const { host } = cluster.network.at('node-1').machine;
        const { exitCode, stderr } = await host.exec('nft', [command]);
        expect(exitCode, stderr).toBe(0);
        const changed = (): unknown[] =>
          agent.lines.filter((line) => textAt(line, 'reason') === 'TableChanged');
        await expect.poll(changed, patience).toHaveLength(1);
        expect(await ask('b-2', 300)).toBe(false);
      } finally {
        await cluster.send('DELETE', `${path}/none`);
        await expect.poll(() => ask('b-2'), patience).toBe(true);
        await agent.stop();
      }
    });

    it('lets new connections follow a change within 100 ms', async () => {
      const agent = startAgent();
      const path = '/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies';
      const spec = { podSelector: {}, policyTypes: ['Egress'] };
      const took: number[] = [];
      try {
        // The machine may be busy with other things: the fastest is what the agent takes.
        const deadline = performance.now() + 45_000;
        while (took.length < 3 || (Math.min(...took) >= 100 && performance.now() < deadline)) {
          await cluster.send('POST', path, { metadata: { name: 'none' }, spec });
          await expect.poll(() => ask('b-2', 200), { ...patience, interval: 1 }).toBe(false);
          await cluster.send('DELETE', `${path}/none`);
          const sinceChange = new Stopwatch();
          await expect.poll(() => ask('b-2', 20), { ...patience, interval: 1 }).toBe(true);
          took.push(sinceChange.elapsedMs());
        }
      } finally {
        await agent.stop();
      }
      expect(Math.min(...took)).toBeLessThan(100);
    });

    it('says that Pods of a bridge are not filtered where br_netfilter is absent or off', async () => {
      const { host } = cluster.network.at('node-1').machine;
      const warnings = async (value: string | undefined, routesPods: boolean) => {
        const asked = Promise.withResolvers<undefined>();
        const workloads = (): Promise<string[]> => Promise.resolve([]);
        const sysctl = { ...host.sysctl, get: () => Promise.resolve(value) };
        const exec: Host['exec'] = async (...args) => {
          // What the table is read by comes after the bridges.
          if (args[1].includes('ruleset') || args[1].includes('table')) asked.resolve(undefined);
          return host.exec(...args);
        };
        const agent = startAgent({ host: { ...host, exec, sysctl }, routesPods, workloads });
        await asked.promise;
        await agent.stop();
        return agent.lines.map((line) => textAt(line, 'reason'));
      };
      expect(await warnings(undefined, false)).toEqual(['NoBridgeNetfilter']);
      expect(await warnings('0', false)).toEqual(['NoBridgeNetfilter']);
      expect(await warnings('1', false)).toEqual([]);
      expect(await warnings(undefined, true)).toEqual([]);
    });

    it('does not start beside another engine, which it names, unless it is told to, nor without nft', async () => {
      const { host } = cluster.network.at('node-1').machine;
      const refused = async (options: Partial<PolicyAgentOptions>): Promise<unknown> => {
        const agent = startAgent(options);
        const why = await agent.running.catch((error: unknown) => error);
        await agent.stop().catch(() => undefined);
        return why;
      };
      const named = (name: string) => ({
        message: `another policy engine works on this node (${name}): leave NetworkPolicies to it, or remove it first`,
      });
      const workloads = () => Promise.resolve(['coredns', 'cilium']);
      expect(await refused({ workloads })).toMatchObject(named('Cilium'));
      await host.exec('nft', ['add', 'table', 'ip', 'filter']);
      await host.exec('nft', ['add', 'chain', 'ip', 'filter', 'KUBE-ROUTER-FORWARD']);
      expect(await refused({})).toMatchObject(named("kube-router, k3s' policy engine among others"));
      await startAgent({ besideOtherEngines: true }).stop();
      await host.exec('nft', ['delete', 'table', 'ip', 'filter']);
      const exec = (program: string) => Promise.reject(new ProgramMissingError(program));
      expect(await refused({ host: { ...host, exec } })).toMatchObject({
        message: 'there is no program nft: install the package nftables (1.0.1 or later)',
      });
    });

    it('enforces EgressFirewalls, which follow DNS names and Nodes, and leave Pods alone', async () => {
      const answers = { addresses: ['203.0.113.1'], ttlSeconds: 1 };
      const agent = startAgent({
        resolve: (name) =>
          name === 'api.example'
            ? Promise.resolve({ ...answers })
            : Promise.reject(new Error('no such name')),
      });
      const { network } = cluster;
      try {
        for (const node of ['node-1', 'node-2']) {
          const podCIDRs = [`10.244.${node.slice(-1)}.0/24`];
          await cluster.send('PATCH', `/api/v1/nodes/${node}`, { spec: { podCIDR: podCIDRs[0], podCIDRs } });
        }
        await expect.poll(() => ask('node-2'), patience).toBe(true);
        const rules = [
          { type: 'Allow', to: { dnsName: 'api.example' } },
          { type: 'Allow', to: { dnsName: 'nowhere.example' } },
          { type: 'Allow', to: { nodeSelector: { matchLabels: { reachable: 'yes' } } } },
          { type: 'Deny', to: { cidrSelector: '0.0.0.0/0' } },
        ];
        const path = '/apis/k8s.ovn.org/v1/namespaces/shop/egressfirewalls';
        const firewall = { apiVersion: 'k8s.ovn.org/v1', kind: 'EgressFirewall' };
        await cluster.send('POST', path, {
          ...firewall,
          metadata: { name: 'default' },
          spec: { egress: rules },
        });
        await expect.poll(() => ask('node-2'), patience).toBe(false);
        await expect.poll(() => ask('b-2'), patience).toBe(true);
        answers.addresses = [network.at('node-2').addresses.IPv4];
        await expect.poll(() => ask('node-2'), patience).toBe(true);
        answers.addresses = ['203.0.113.2'];
        await expect.poll(() => ask('node-2'), patience).toBe(false);
        await cluster.send('PATCH', '/api/v1/nodes/node-2', { metadata: { labels: { reachable: 'yes' } } });
        await expect.poll(() => ask('node-2'), patience).toBe(true);
        await cluster.send('PATCH', '/api/v1/nodes/node-2', { metadata: { labels: { reachable: null } } });
        await expect.poll(() => ask('node-2'), patience).toBe(false);
        await cluster.send('DELETE', `${path}/default`);
        await expect.poll(() => ask('node-2'), patience).toBe(true);
      } finally {
        await agent.stop();
      }
    });
  },
);

/** The kind with a schema that takes anything. */
const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: {
    name: 'egressfirewalls.k8s.ovn.org',
    annotations: { 'api-approved.kubernetes.io': 'unapproved' },
  },
  spec: {
    group: 'k8s.ovn.org',
    scope: 'Namespaced',
    names: { plural: 'egressfirewalls', singular: 'egressfirewall', kind: 'EgressFirewall' },
    versions: [
      {
        ...{ name: 'v1', served: true, storage: true },
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
};
