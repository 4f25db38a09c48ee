import { expect, it } from 'vitest';
import { planForwarding } from '../../src/network/forwarding/planner.ts';
import { NftablesWriter } from '../../src/node/nftables/writer.ts';
import { makers } from './support/gate.ts';
import { endpointSlice, forwardingNode, forwardingOptions, service } from './support/objects.ts';
import { startNetwork } from './support/network.ts';

it.for(makers)(
  'a Pod reaches a Pod of another node by a cluster IP, by the namespaces of $maker',
  async ({ maker, missing }, { skip }) => {
    skip(missing !== '', `missing: ${missing}`);
    const network = await startNetwork(maker, { 'node-1': ['client'], 'node-2': ['server'] });
    try {
      await network.at('server').machine.serve(8080);
      const plan = planForwarding(
        [service({ clusterIPs: ['10.96.0.10', 'fd00:96::a'], ports: [{ port: 80, targetPort: 8080 }] })],
        [
          endpointSlice('IPv4', [{ address: network.at('server').addresses.IPv4, node: 'node-2' }], 8080),
          endpointSlice('IPv6', [{ address: network.at('server').addresses.IPv6, node: 'node-2' }], 8080),
        ],
        forwardingNode('node-1', network.at('node-1').addresses),
        forwardingOptions,
      );
      await new NftablesWriter({ host: network.at('node-1').machine.host }).sync(plan);

      const client = network.at('client');
      const { stdout } = await client.machine.host.exec('curl', [
        '-sS',
        '--max-time',
        '5',
        'http://10.96.0.10',
      ]);
      expect(JSON.parse(stdout)).toEqual({ name: 'server', port: 8080, client: client.addresses.IPv4 });
      expect(await client.machine.ask('fd00:96::a', 80)).toMatchObject({
        name: 'server',
        client: client.addresses.IPv6,
      });
    } finally {
      await network.close();
    }
  },
);
