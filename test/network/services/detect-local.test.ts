import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ForwardingOptions } from '../../../src/network/forwarding/node-plan.ts';
import { parseCidr } from '../../../src/objects/address.ts';
import { missingFor } from '../support/gate.ts';
import { clusterIPs, families, ServiceNetwork } from '../support/service-network.ts';

const [webIPs] = clusterIPs;
const missing = missingFor('user');

/** `--detect-local-mode`: what reaches a cluster IP from elsewhere than a local Pod is masqueraded (D7). */
describe.skipIf(missing !== '')(
  `a source that is a Pod of the node${missing && ` (missing: ${missing})`}`,
  () => {
    let cluster: ServiceNetwork;

    beforeAll(async () => {
      cluster = await ServiceNetwork.start('user', { 'node-1': ['a-1', 'b-1'], 'node-2': ['c-2'] });
    });
    afterAll(() => cluster.close());

    /** Asserts which machines c-2 sees with their own addresses behind the cluster IP, of those that ask by node-1. */
    async function expectSeen(
      podDetection: ForwardingOptions['podDetection'],
      seen: readonly string[],
    ): Promise<void> {
      await cluster.applyWith({ podDetection }, { backends: ['c-2'] });
      for (const family of families) {
        for (const from of ['a-1', 'b-1', 'outside']) {
          const client = cluster.addresses(seen.includes(from) ? from : 'node-1')[family];
          const outcome = await cluster.ask(from, webIPs[family]);
          expect(outcome, `${from}, ${family}`).toMatchObject({ name: 'c-2', client });
        }
      }
    }

    it('NodeCIDR: has an address of the Pod CIDRs of the node', async () => {
      const cidrs = ['10.244.1.0/24', 'fd00:244:1::/64'].map(parseCidr).filter((cidr) => cidr !== undefined);
      await expectSeen({ by: 'cidr', cidrs }, ['a-1', 'b-1']);
      // For node-2 these are the Pods of another node.
      await cluster.applyWith({ podDetection: { by: 'cidr', cidrs } }, { backends: ['a-1'] });
      for (const family of families) {
        const client = cluster.addresses('node-2')[family];
        expect(await cluster.ask('c-2', webIPs[family]), family).toMatchObject({ name: 'a-1', client });
      }
    });

    it('InterfaceNamePrefix: came in by an interface whose name begins so', async () => {
      await expectSeen({ by: 'interfacePrefix', prefix: 'a-' }, ['a-1']);
    });

    it('BridgeInterface: came in by the bridge', async () => {
      const { host } = cluster.network.at('node-1').machine;
      const ip = async (...words: readonly string[]): Promise<void> => {
        const { exitCode, stderr } = await host.exec('ip', words);
        expect(exitCode, stderr).toBe(0);
      };
      await ip('link', 'add', 'cbr0', 'type', 'bridge');
      await ip('link', 'set', 'cbr0', 'up');
      await ip('link', 'set', 'a-1', 'master', 'cbr0');
      await ip('address', 'add', '10.244.1.1/32', 'dev', 'cbr0');
      await ip('address', 'add', 'fd00:244:1::1/128', 'dev', 'cbr0', 'nodad');
      for (const family of families)
        await ip('route', 'replace', cluster.addresses('a-1')[family], 'dev', 'cbr0');
      await expectSeen({ by: 'bridge', interface: 'cbr0' }, ['a-1']);
    });
  },
);
