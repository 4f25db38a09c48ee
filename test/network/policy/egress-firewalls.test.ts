import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/client/clock.ts';
import { InformerFactory } from '../../../src/client/informers/informer-factory.ts';
import { PolicyAgent } from '../../../src/node/policy/policy-agent.ts';
import { Metrics } from '../../../src/telemetry/metrics.ts';
import { TestCluster } from '../support/cluster.ts';
import { missingFor } from '../support/gate.ts';

const missing = missingFor('user');
const patience = { timeout: 30_000 };

describe.skipIf(missing !== '')(`EgressFirewalls${missing === '' ? '' : ` (missing: ${missing})`}`, () => {
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

  it('are enforced by the agent, follow DNS names and Nodes, and leave Pods alone', async () => {
    const { network } = cluster;
    const answers = { addresses: ['203.0.113.1'], ttl: 1 };
    const context = {
      ...{ clock: systemClock, random: Math.random, log: pino({ level: 'silent' }) },
      metrics: new Metrics(),
      events: { event: () => undefined },
    };
    const informers = new InformerFactory({ ...context, transport: cluster.server.client });
    const stopping = new AbortController();
    const agent = new PolicyAgent({
      context: { ...context, informers },
      host: network.at('node-1').machine.host,
      nodeName: 'node-1',
      resolve: (name) =>
        name === 'api.example' ? Promise.resolve({ ...answers }) : Promise.reject(new Error('no such name')),
    });
    const running = agent.run(stopping.signal);
    informers.start(stopping.signal);
    try {
      const ask = async (destination: string): Promise<boolean> => {
        const { IPv4 } = network.at(destination).addresses;
        return typeof (await network.at('a-1').machine.ask(IPv4, 8080, { timeout: 1000 })) === 'object';
      };
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
      stopping.abort();
      await Promise.all([running, informers.finished()]);
    }
  });
});

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
