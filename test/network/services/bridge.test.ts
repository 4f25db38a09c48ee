import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { planForwarding } from '../../../src/network/forwarding/planner.ts';
import { NftablesWriter } from '../../../src/node/nftables/writer.ts';
import { missingFor } from '../support/gate.ts';
import { startNetwork, type TestNetwork } from '../support/network.ts';
import { endpointSlice, forwardingNode, forwardingOptions, service } from '../support/objects.ts';

const missing =
  missingFor('user') ||
  (existsSync('/proc/sys/net/bridge/bridge-nf-call-iptables') ? '' : 'the module br_netfilter');

describe.skipIf(missing !== '')(
  `Services between Pods that share a bridge${missing === '' ? '' : ` (missing: ${missing})`}`,
  () => {
    let network: TestNetwork;
    beforeAll(async () => {
      network = await startNetwork('user', { 'node-1': ['client', 'server'] }, 'bridged');
      await network.at('server').machine.serve(8080);
      await network.at('client').machine.serve(8080);
    });
    afterAll(() => network.close());

    it.each(['client', 'server'])('lead to %s, by br_netfilter, in both families', async (name) => {
      const { IPv4, IPv6 } = network.at(name).addresses;
      const plan = planForwarding(
        [service({ clusterIPs: ['10.96.0.10', 'fd00:96::a'], ports: [{ port: 80, targetPort: 8080 }] })],
        [
          endpointSlice('IPv4', [{ address: IPv4, node: 'node-1' }], 8080),
          endpointSlice('IPv6', [{ address: IPv6, node: 'node-1' }], 8080),
        ],
        forwardingNode('node-1', network.at('node-1').addresses),
        forwardingOptions,
      );
      await new NftablesWriter({ host: network.at('node-1').machine.host }).sync(plan);
      for (const address of ['10.96.0.10', 'fd00:96::a']) {
        expect(await network.at('client').machine.ask(address, 80)).toMatchObject({ name });
      }
    });
  },
);
