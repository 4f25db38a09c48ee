import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readTracedCluster } from '../../../src/view/trace-cluster.ts';
import { type Trace, tracePath } from '../../../src/network/path/trace.ts';
import { parseCidr } from '../../../src/objects/address.ts';
import { AnnouncingCluster } from '../support/announcing.ts';
import type { RunningAgents } from '../support/cluster.ts';
import { missingFor, missingProgram } from '../support/gate.ts';
import { endpointSlice } from '../support/objects.ts';

const missing = [missingFor('user'), missingProgram('arping', 'iputils-arping')]
  .filter((what) => what !== '')
  .join(', ');
const pods = { 'node-1': ['a-1', 'b-1'], 'node-2': ['a-2'], 'node-3': ['a-3'] } as const;
const places = Object.entries(pods).flatMap(([node, names]) => names.map((name) => ({ name, node })));

/** Services of which each has an address that agents announce. */
const random = fc.array(
  fc.record({
    policy: fc.constantFrom('Cluster', 'Local', 'Local'),
    endpoints: fc.uniqueArray(fc.constantFrom(...places), { minLength: 1, maxLength: 4 }),
  }),
  { minLength: 4, maxLength: 4 },
);

describe.skipIf(missing !== '')(`trace from outside${missing === '' ? '' : ` (missing: ${missing})`}`, () => {
  let cluster: AnnouncingCluster;
  let forwarding: RunningAgents;
  beforeAll(async () => {
    cluster = await AnnouncingCluster.start(3, { pods });
    for (const { name } of places) await cluster.machine(name).serve(8080);
    forwarding = cluster.cluster.startAgents(cluster.nodes);
    cluster.startAgents();
  });
  afterAll(async () => {
    await forwarding.stop();
    await cluster.close();
  });

  it('names the endpoints that real packets reach, wherever an address is announced', async () => {
    const seed = Number(process.env['TRACE_SEED'] ?? Date.now() % 1_000_000);
    console.log(`trace from outside: TRACE_SEED=${seed}`);
    const [services = []] = fc.sample(random, { seed, numRuns: 1 });
    const addresses = services.map((_, index) => `192.0.2.${200 + index}`);
    for (const [index, { policy, endpoints }] of services.entries()) {
      const name = `web-${index}`;
      const list = endpoints.map(({ name: pod, node }) => ({
        ...{ address: cluster.cluster.network.at(pod).addresses.IPv4, node },
      }));
      await cluster.cluster.slice(endpointSlice('IPv4', list, 8080, name));
      await cluster.service(name, [addresses[index] ?? ''], { externalTrafficPolicy: policy });
    }
    await agree(addresses);
    await cluster.cluster.send('PATCH', '/api/v1/nodes/node-1', { spec: { unschedulable: true } });
    await agree(addresses);
    // No other node takes them: they wait for the restart, where they are.
    for (const node of cluster.nodes) await cluster.agent(node).signal('TERM');
    await agree(addresses);
  }, 300_000);

  async function agree(addresses: readonly string[]): Promise<void> {
    for (const address of addresses) {
      const compare = async (): Promise<string> => {
        const planned = await traceTo(address);
        const named = planned.endpoints.map((one) => nameOf(one.address));
        const answered = new Set<string>();
        for (let tries = 0; tries < 8 * Math.max(1, named.length); tries++) {
          const outcome = await cluster.client.ask(address, 80, { timeout: 1000 });
          answered.add(typeof outcome === 'object' ? outcome.name : outcome);
        }
        const expected = planned.reachable === true ? named.toSorted().join() : 'silence';
        const seen = [...answered].toSorted().join();
        return seen === expected ? '' : `${seen}, not ${expected}: ${JSON.stringify(planned.stages)}`;
      };
      await expect.poll(compare, { timeout: 60_000, message: address }).toBe('');
    }
  }

  async function traceTo(address: string): Promise<Trace> {
    const { view } = await readTracedCluster(cluster.cluster.server.client, {
      clusterCidrs: [parseCidr('10.244.0.0/16') ?? []].flat(),
      masqueradeAll: undefined,
      nodePortAddresses: 'primary',
    });
    const outside = { kind: 'outside', addresses: [cluster.cluster.network.outside.addresses.IPv4] } as const;
    return tracePath(view, outside, { address, protocol: 'TCP', port: 80 });
  }

  function nameOf(address: string): string {
    return (
      places.find(({ name }) => cluster.cluster.network.at(name).addresses.IPv4 === address)?.name ?? address
    );
  }
});
