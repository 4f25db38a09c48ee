/**
 * NetworkPolicies into the kernel of a node: 500 of them and 2,000 Pods, 110 of which are the node's; then one Pod more
 * and one less: `node test/bench/policies.ts [policies] [pods]`. Needs unshare and nft, and no root. Prints a table and
 * writes bench-results/policies.json.
 */
import { createHash } from 'node:crypto';
import { missingFor } from '../network/support/gate.ts';
import { startNetwork } from '../network/support/network.ts';
import { policyRules } from '../../src/network/policy/network-policy.ts';
import type { AddressedPod } from '../../src/network/policy/policy-plan.ts';
import { PolicyIndex } from '../../src/network/policy/policy-index.ts';
import { Nft } from '../../src/node/nftables/nft.ts';
import { PolicyTable } from '../../src/node/policy/policy-table.ts';
import { joinKey } from '../../src/objects/meta.ts';
import type { NetworkPolicy } from '../../src/objects/types/networking.generated.ts';
import { report, type Row } from './report.ts';

const missing = missingFor('user');
if (missing !== '') {
  console.error(`missing: ${missing}`);
  process.exit(1);
}
const [policyCount = 500, podCount = 2000] = process.argv.slice(2).map(Number);
const namespaces = 20;
/** Pods of a node, as kubelets have it. */
const podsOfNode = 110;
const rounds = 20;

const network = await startNetwork('user', { 'node-1': [] });
try {
  const { host } = network.at('node-1').machine;
  const index = new PolicyIndex('node-0', (text) =>
    createHash('sha256').update(text).digest('hex').slice(0, 16),
  );
  const table = new PolicyTable(new Nft(host));
  const rows: Row[] = [];
  const started = performance.now();
  for (let i = 0; i < podCount; i++) index.setPod(...podOf(i));
  for (let i = 0; i < policyCount; i++) index.setPolicy(`p${i}`, policyRules(policyOf(i)));
  const plan = index.plan();
  const planned = performance.now();
  await table.sync(plan);
  const name = `${policyCount} policies × ${podCount} Pods`;
  rows.push(
    { name: `${name}: plan`, value: planned - started, unit: 'ms' },
    {
      name: `${name}: into the kernel, with the plan`,
      value: performance.now() - started,
      unit: 'ms',
      budget: '≤ 2000',
    },
  );
  const arrivals: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const [key, pod] = podOf(podCount + round);
    arrivals.push(await timed(() => index.setPod(key, { ...pod, pod: { ...pod.pod, node: 'node-0' } })));
    await timed(() => index.setPod(key, undefined));
  }
  arrivals.sort((a, b) => a - b);
  rows.push(
    { name: `${name}: one Pod more, p50`, value: arrivals[rounds / 2] ?? 0, unit: 'ms', budget: '≤ 25' },
    { name: `${name}: one Pod more, max`, value: arrivals.at(-1) ?? 0, unit: 'ms' },
  );
  rows.push({ name: `${name}: restart that writes nothing`, value: await restarted(), unit: 'ms' });
  await report('policies', rows);

  async function timed(change: () => void): Promise<number> {
    const at = performance.now();
    change();
    const { transactions } = await table.sync(index.plan());
    if (transactions !== 1) throw new Error(`${transactions} transactions for one Pod`);
    return performance.now() - at;
  }

  async function restarted(): Promise<number> {
    const at = performance.now();
    const { transactions } = await new PolicyTable(new Nft(host)).sync(index.plan());
    if (transactions !== 0) throw new Error(`${transactions} transactions of a restart`);
    return performance.now() - at;
  }
} finally {
  await network.close();
}

function podOf(i: number): [string, AddressedPod] {
  const namespace = `ns-${i % namespaces}`;
  const name = `pod-${i}`;
  const labels = { app: `app-${i % 40}`, tier: i % 3 === 0 ? 'front' : 'back' };
  const pod = {
    ...{ kind: 'pod' as const, key: joinKey(namespace, name), namespace, labels, hostNetwork: false },
    namespaceLabels: { 'kubernetes.io/metadata.name': namespace, team: `team-${(i % namespaces) % 5}` },
    node: `node-${Math.floor(i / podsOfNode)}`,
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
  };
  const low = 10 + i;
  return [
    pod.key,
    { pod, addresses: [`10.244.${low >> 8}.${low & 255}`, `fd00:10:244::${low.toString(16)}`] },
  ];
}

/** From an application of the namespace, a team, and a range, to some ports; every third also outwards. */
function policyOf(i: number): NetworkPolicy {
  const app = (of: number): { matchLabels: Record<string, string> } => ({
    matchLabels: { app: `app-${of % 40}` },
  });
  const team = { matchLabels: { team: `team-${i % 5}` } };
  return {
    metadata: { namespace: `ns-${i % namespaces}`, name: `p${i}` },
    spec: {
      podSelector: app(i),
      ingress: [
        { from: [{ podSelector: app(i + 1) }, { namespaceSelector: team, podSelector: app(i + 2) }] },
        {
          from: [{ ipBlock: { cidr: `192.168.${i % 256}.0/24` } }],
          ports: [{ port: 8080 }, { port: 'http' }],
        },
      ],
      ...(i % 3 === 0
        ? { egress: [{ to: [{ namespaceSelector: {} }], ports: [{ port: 53, protocol: 'UDP' }] }] }
        : {}),
    },
  };
}
