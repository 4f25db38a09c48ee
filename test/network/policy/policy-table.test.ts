import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { policyRules } from '../../../src/network/policy/network-policy.ts';
import { PolicyIndex } from '../../../src/network/policy/policy-index.ts';
import { Nft } from '../../../src/node/nftables/nft.ts';
import { otherPolicyEngines } from '../../../src/node/policy/policy-agent.ts';
import { PolicyTable } from '../../../src/node/policy/policy-table.ts';
import { isRecord } from '../../../src/objects/json.ts';
import { joinKey } from '../../../src/objects/meta.ts';
import { listAt } from '../../../src/objects/json.ts';
import { podOf, pods, randomPolicy } from '../../unit/network/policy/samples.ts';
import { missingFor } from '../support/gate.ts';
import { startNetwork, type TestNetwork } from '../support/network.ts';
import type { Host } from '../../../src/host/host.ts';

const missing = missingFor('user');
/** Never the same for two texts, and as long as names may be. */
const hash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16);
const lacks = missing === '' ? '' : ` (missing: ${missing})`;

describe.skipIf(missing !== '')(`the table of policies${lacks}`, () => {
  let network: TestNetwork;
  let host: Host;
  let anew: Host;
  beforeAll(async () => {
    network = await startNetwork('user', { 'node-1': [], 'node-2': [] });
    host = network.at('node-1').machine.host;
    anew = network.at('node-2').machine.host;
  });
  afterEach(async () => {
    for (const each of [host, anew]) await new PolicyTable(new Nft(each)).cleanUp();
  });
  afterAll(() => network.close());

  /** What nft lists of a machine, without what it numbers. */
  async function listed(of: Host): Promise<readonly string[]> {
    const text = await new Nft(of).list([], 'ruleset');
    const items = text === undefined ? [] : listAt(JSON.parse(text), 'nftables').slice(1);
    const plain = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(plain);
      if (!isRecord(value)) return value;
      return Object.fromEntries(
        Object.entries(value).flatMap(([key, each]) => {
          if (key === 'handle') return [];
          // Of sets and maps, in no order.
          if (key === 'elem' && Array.isArray(each))
            return [[key, each.map((one) => JSON.stringify(plain(one))).sort()]];
          return [[key, plain(each)]];
        }),
      );
    };
    return items.map((item) => JSON.stringify(plain(item))).sort();
  }

  it('is after any change what it would be if it were made anew, and a restart writes nothing', async () => {
    const index = new PolicyIndex('n1', hash);
    const table = new PolicyTable(new Nft(host));
    const shown = new Set<string>();
    const change = fc.oneof(
      fc.record({
        pod: fc.constantFrom(...pods),
        isThere: fc.boolean(),
        label: fc.constantFrom('a', 'b', 'c'),
      }),
      fc.record({ slot: fc.nat(3), policy: fc.option(randomPolicy, { nil: undefined }) }),
    );
    const changes = fc.sample(fc.array(change, { minLength: 1, maxLength: 6 }), { numRuns: 12, seed: 5 });
    for (const batch of changes) {
      for (const each of batch) {
        if ('slot' in each) {
          const { policy, slot } = each;
          index.setPolicy(`x/p${slot}`, policy === undefined ? undefined : policyRules(policy));
        } else {
          const { namespace, name, address } = each.pod;
          const pod = podOf({ ...each.pod, labels: { pod: each.label } });
          index.setPod(joinKey(namespace, name), each.isThere ? { pod, addresses: [address] } : undefined);
        }
      }
      const plan = index.plan();
      await table.sync(plan);
      expect(await new PolicyTable(new Nft(host)).sync(plan)).toEqual({ transactions: 0, commands: 0 });
      await new PolicyTable(new Nft(anew)).cleanUp();
      await new PolicyTable(new Nft(anew)).sync(plan);
      if (plan.chains.size > 0) expect(await listed(host)).toEqual(await listed(anew));
      shown.add(String(plan.chains.size));
    }
    // Not always nothing.
    expect(shown.size).toBeGreaterThan(3);
  });

  it('loses no change that comes while it is written, beside another writer of the machine', async () => {
    const index = new PolicyIndex('n1', hash);
    const [shape = expect.unreachable()] = pods;
    const { namespace } = shape;
    const setPod = (label: string, number: number, isThere: boolean): void => {
      const name = `${label}-${number}`;
      const pod = podOf({ ...shape, name, labels: { pod: label } });
      const host = 10 * number + label.charCodeAt(0);
      const addresses = [`10.244.9.${host}`, `fd00::${host}`];
      index.setPod(joinKey(namespace, name), isThere ? { pod, addresses } : undefined);
    };
    const setPolicy = (name: string, peer: string, isThere: boolean): void => {
      const from = [{ podSelector: { matchLabels: { pod: peer } } }];
      const ingress = [{ from, ports: [{ port: 80 }] }, { ports: [{ port: 'http' }] }];
      const policy = policyRules({ metadata: { namespace, name }, spec: { podSelector: {}, ingress } });
      index.setPolicy(joinKey(namespace, name), isThere ? policy : undefined);
    };
    setPod('d', 0, true);
    setPolicy('first', 'b', true);
    const table = new PolicyTable(new Nft(host));
    let isOver = false;
    const write = async (): Promise<void> => {
      const foreign = new Nft(host);
      while (!isOver)
        await foreign.runText(
          'add table inet other; add set inet other s { type ipv4_addr; }; delete table inet other',
        );
    };
    const other = write();
    try {
      for (let round = 0; round < 60; round++) {
        const written = table.sync(index.plan());
        // While it is written, or afterwards.
        if (round % 4 === 0) await written;
        for (const [i, label] of ['a', 'b', 'c'].entries()) setPod(label, round % 5, (round + i) % 3 !== 0);
        setPolicy('second', 'a', round % 2 === 0);
        setPolicy('third', 'c', round % 4 < 2);
        await written;
      }
    } finally {
      isOver = true;
      await other;
    }
    await table.sync(index.plan());
    await table.close();
    await new PolicyTable(new Nft(anew)).sync(index.plan());
    expect(await listed(host)).toEqual(await listed(anew));
  });

  it('is mended where it was flushed, and taken away whole', async () => {
    const index = new PolicyIndex('n1', hash);
    for (const pod of pods) {
      index.setPod(joinKey(pod.namespace, pod.name), { pod: podOf(pod), addresses: [pod.address] });
    }
    const from = [{ podSelector: { matchLabels: { pod: 'b' } } }, { ipBlock: { cidr: '192.168.0.0/16' } }];
    const spec = {
      podSelector: {},
      ingress: [{ from, ports: [{ port: 80, endPort: 90 }, { port: 'http' }] }],
    };
    index.setPolicy('x/p', policyRules({ metadata: { namespace: 'x', name: 'p' }, spec }));
    const table = new PolicyTable(new Nft(host));
    await table.sync(index.plan());
    const whole = await listed(host);
    const [chain = ''] = index.plan().chains.keys();
    for (const damage of [
      'flush ruleset',
      'delete chain inet servicenet-policy input-egress',
      `flush chain inet servicenet-policy ${chain}`,
    ]) {
      await new Nft(host).runText(damage);
      table.invalidate();
      await table.sync(index.plan());
      expect(await listed(host)).toEqual(whole);
    }
    await table.cleanUp();
    expect(await listed(host)).toEqual([]);
  });

  it('has nothing left of the policies of an agent before', async () => {
    const index = new PolicyIndex('n1', hash);
    for (const pod of pods) {
      index.setPod(joinKey(pod.namespace, pod.name), { pod: podOf(pod), addresses: [pod.address] });
    }
    const setPolicy = (name: string, ipBlock: { readonly cidr: string } | undefined): void => {
      if (ipBlock === undefined) {
        index.setPolicy(`x/${name}`, undefined);
        return;
      }
      const ingress = [{ from: [{ ipBlock }, { podSelector: {} }], ports: [{ port: 'http' }, { port: 80 }] }];
      const policy = { metadata: { namespace: 'x', name }, spec: { podSelector: {}, ingress } };
      index.setPolicy(`x/${name}`, policyRules(policy));
    };
    setPolicy('stays', { cidr: '10.0.0.0/8' });
    setPolicy('goes', { cidr: '192.168.0.0/16' });
    await new PolicyTable(new Nft(host)).sync(index.plan());
    const before = await listed(host);
    setPolicy('goes', undefined);
    await new PolicyTable(new Nft(host)).sync(index.plan());
    await new PolicyTable(new Nft(anew)).sync(index.plan());
    expect(await listed(host)).toEqual(await listed(anew));
    expect((await listed(host)).length).toBeLessThan(before.length);
  });

  it('is not made beside that of another engine', async () => {
    expect(await otherPolicyEngines(new Nft(host))).toEqual([]);
    await new Nft(host).runText(
      'add table ip filter; add chain ip filter cali-FORWARD; add chain ip filter KUBE-ROUTER-FORWARD',
    );
    expect(await otherPolicyEngines(new Nft(host))).toEqual([
      'Calico',
      "kube-router, k3s' policy engine among others",
    ]);
    await new Nft(host).runText('delete table ip filter');
  });
});
