import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { firewallRules } from '../../../src/network/policy/egress-firewall.ts';
import { firewallFilter } from '../../../src/network/policy/egress-firewall.ts';
import { PolicyIndex } from '../../../src/network/policy/policy-index.ts';
import { Nft } from '../../../src/node/nftables/nft.ts';
import { PolicyTable } from '../../../src/node/policy/policy-table.ts';
import { missingFor } from '../support/gate.ts';
import { startNetwork, type TestNetwork } from '../support/network.ts';

const missing = missingFor('user');
const lacks = missing === '' ? '' : ` (missing: ${missing})`;
const hash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16);

describe.skipIf(missing !== '')(`an EgressFirewall of 8,001 rules${lacks}`, () => {
  let network: TestNetwork;
  beforeAll(async () => {
    network = await startNetwork('user', { 'node-1': ['a-1'], 'node-2': [] });
    await network.at('node-2').machine.serve(8080);
  });
  afterAll(() => network.close());

  it('is in force with its last rule, and with one rule more not at all', async () => {
    const index = new PolicyIndex('node-1', hash);
    const table = new PolicyTable(new Nft(network.at('node-1').machine.host));
    const pod = {
      ...{ kind: 'pod' as const, key: 'shop/a', namespace: 'shop', node: 'node-1', hostNetwork: false },
      ...{ labels: {}, namespaceLabels: {}, ports: [] },
    };
    index.setPod('shop/a', { pod, addresses: [network.at('a-1').addresses.IPv4] });
    const last = { type: 'Deny', to: { cidrSelector: `${network.at('node-2').addresses.IPv4}/32` } };
    // No two of them that follow each other do the same: each is a rule of the kernel.
    const others = Array.from({ length: 8001 }, (_, i) => ({
      type: i % 2 === 0 ? 'Allow' : 'Deny',
      to: { cidrSelector: `198.18.${i >> 8}.${i & 255}/32` },
    }));
    const reached = async (count: number): Promise<boolean> => {
      const egress = [...others.slice(0, count - 1), last];
      const rules = firewallRules({ metadata: { namespace: 'shop', name: 'default' }, spec: { egress } });
      const filter = firewallFilter(rules, { clusterCidrs: [], nodes: [], names: new Map() }, hash);
      index.setFirewalls(new Map(filter === undefined ? [] : [['shop', filter]]));
      await table.sync(index.plan());
      const { IPv4 } = network.at('node-2').addresses;
      return typeof (await network.at('a-1').machine.ask(IPv4, 8080, { timeout: 2000 })) === 'object';
    };
    expect(await reached(8001)).toBe(false);
    expect(await reached(8002)).toBe(true);
    // Most of it is the kernel's: 20 s of CPU for a chain of so many different rules.
  }, 300_000);
});
