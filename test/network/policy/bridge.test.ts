import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { policyRules } from '../../../src/network/policy/network-policy.ts';
import { PolicyIndex } from '../../../src/network/policy/policy-index.ts';
import { Nft } from '../../../src/node/nftables/nft.ts';
import { PolicyTable } from '../../../src/node/policy/policy-table.ts';
import type { NetworkPolicySpec } from '../../../src/objects/types/networking.generated.ts';
import { missingFor } from '../support/gate.ts';
import { startNetwork, type TestNetwork } from '../support/network.ts';

const parameters = ['net/bridge/bridge-nf-call-iptables', 'net/bridge/bridge-nf-call-ip6tables'];
const missing =
  missingFor('user') || (existsSync(`/proc/sys/${parameters[0]}`) ? '' : 'the module br_netfilter');
const hash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16);
const families = ['IPv4', 'IPv6'] as const;
const podNames = ['a-1', 'b-1', 'c-1'] as const;

describe.skipIf(missing !== '')(
  `policies between Pods that share a bridge${missing === '' ? '' : ` (missing: ${missing})`}`,
  () => {
    let network: TestNetwork;
    let table: PolicyTable;
    beforeAll(async () => {
      network = await startNetwork('user', { 'node-1': [...podNames] }, 'bridged');
      table = new PolicyTable(new Nft(network.at('node-1').machine.host));
      for (const name of podNames) {
        await network.at(name).machine.serve(8080);
        await network.at(name).machine.serve(8081);
      }
    });
    afterEach(async () => {
      await table.cleanUp();
      for (const name of parameters) await network.at('node-1').machine.host.sysctl.set(name, '1');
      // A neighbour that is known already is not looked for.
      for (const name of podNames) await network.at(name).machine.host.exec('ip', ['neigh', 'flush', 'all']);
    });
    afterAll(() => network.close());

    async function enforce(spec: NetworkPolicySpec): Promise<void> {
      const index = new PolicyIndex('node-1', hash);
      for (const name of podNames) {
        const pod = {
          ...{ kind: 'pod' as const, key: `shop/${name}` as const, namespace: 'shop', node: 'node-1' },
          ...{ labels: { app: name }, namespaceLabels: {}, ports: [], hostNetwork: false },
        };
        const { IPv4, IPv6 } = network.at(name).addresses;
        index.setPod(pod.key, { pod, addresses: [IPv4, IPv6] });
      }
      index.setPolicy('shop/p', policyRules({ metadata: { namespace: 'shop', name: 'p' }, spec }));
      await table.sync(index.plan());
    }

    /** `a-1 b-1 8080 IPv4`: who is answered by another Pod. */
    async function reached(expected: (line: string) => boolean): Promise<readonly string[]> {
      const found = await Promise.all(
        podNames.flatMap((from) =>
          podNames
            .filter((to) => to !== from)
            .flatMap((to) =>
              families.flatMap((family) =>
                [8080, 8081].map(async (port) => {
                  const line = `${from} ${to} ${port} ${family}`;
                  const timeout = expected(line) ? 20_000 : 500;
                  const { addresses } = network.at(to);
                  const outcome = await network.at(from).machine.ask(addresses[family], port, { timeout });
                  return typeof outcome === 'object' ? [line] : [];
                }),
              ),
            ),
        ),
      );
      return found.flat(2).toSorted();
    }

    const all = podNames
      .flatMap((from) => podNames.filter((to) => to !== from).map((to) => `${from} ${to}`))
      .flatMap((pair) =>
        families.flatMap((family) => [8080, 8081].map((port) => `${pair} ${port} ${family}`)),
      );

    it.each<[string, NetworkPolicySpec, (line: string) => boolean]>([
      [
        'with peers and ports, into a Pod',
        {
          podSelector: { matchLabels: { app: 'b-1' } },
          ingress: [{ from: [{ podSelector: { matchLabels: { app: 'a-1' } } }], ports: [{ port: 8080 }] }],
        },
        (line) => !line.includes(' b-1 ') || line.startsWith('a-1 b-1 8080'),
      ],
      [
        'with ports, out of all Pods and into them',
        {
          ...{ podSelector: {}, policyTypes: ['Ingress', 'Egress'] },
          ...{ ingress: [{ ports: [{ port: 8081 }] }], egress: [{ ports: [{ port: 8081 }] }] },
        },
        (line) => line.includes(' 8081 '),
      ],
      ['that allow nothing', { podSelector: {}, policyTypes: ['Ingress', 'Egress'] }, () => false],
    ])('are in force by br_netfilter, of both families: %s', async (_what, spec, isAllowed) => {
      await enforce(spec);
      expect(await reached(isAllowed)).toEqual(all.filter(isAllowed).toSorted());
    });

    it('are not without it', async () => {
      for (const name of parameters) await network.at('node-1').machine.host.sysctl.set(name, '0');
      await enforce({ podSelector: {}, policyTypes: ['Ingress', 'Egress'] });
      expect(await reached(() => true)).toEqual(all.toSorted());
    });
  },
);
