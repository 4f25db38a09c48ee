import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ForwardingPlan } from '../../src/network/forwarding/forwarding-plan.ts';
import { planForwarding } from '../../src/network/forwarding/planner.ts';
import { type Packet, sourceOf, verdictFor } from '../../src/network/forwarding/verdict.ts';
import { NftablesWriter } from '../../src/node/nftables/writer.ts';
import type { IPFamily } from '../../src/objects/address.ts';
import type { Service } from '../../src/objects/types/core.generated.ts';
import { missingFor } from './support/gate.ts';
import type { Outcome } from './support/machine-protocol.ts';
import { startNetwork, type TestNetwork } from './support/network.ts';
import { forwardingNode, forwardingOptions } from './support/objects.ts';
import { pods, randomServices, servicesOf, slicesOf, targetPorts } from './support/random-services.ts';

const families = ['IPv4', 'IPv6'] as const satisfies readonly IPFamily[];
const nodes = ['node-1', 'node-2'] as const;

/** Milliseconds in which a machine would have answered, or refused, were it not to stay silent. */
const silence = 500;

const missing = missingFor('user');

describe.skipIf(missing !== '')(`real packets${missing === '' ? '' : ` (missing: ${missing})`}`, () => {
  let network: TestNetwork;
  const writers = new Map<string, NftablesWriter>();

  beforeAll(async () => {
    network = await startNetwork('user', { 'node-1': ['a-1', 'b-1'], 'node-2': ['c-2'] });
    for (const name of Object.keys(pods)) {
      for (const port of targetPorts) {
        await network.at(name).machine.serve(port, 'TCP');
        await network.at(name).machine.serve(port, 'UDP');
      }
    }
    for (const node of nodes) writers.set(node, new NftablesWriter({ host: network.at(node).machine.host }));
  });
  afterAll(() => network.close());

  it('the kernel does with every packet what the plan says, and the table is what was planned', async () => {
    let sourcePort = 20_000;
    await fc.assert(
      fc.asyncProperty(fc.noShrink(randomServices), async (specs) => {
        const services = servicesOf(specs);
        const slices = slicesOf(specs, network);
        const plans = new Map<string, ForwardingPlan>();
        for (const node of nodes) {
          const own = forwardingNode(node, network.at(node).addresses);
          const plan = planForwarding(services, slices, own, forwardingOptions);
          plans.set(node, plan);
          await writers.get(node)?.sync(plan);
          const { host } = network.at(node).machine;
          // The next writer deletes chains that nothing leads to any more, and has nothing to do after that.
          const next = new NftablesWriter({ host });
          expect(await next.sync(plan)).toMatchObject({ elements: 0 });
          expect(await new NftablesWriter({ host }).sync(plan)).toMatchObject({ transactions: 0 });
          writers.set(node, next);
        }
        await Promise.all(
          questions(network, services).map(async (question) => {
            const plan = plans.get(question.node);
            if (plan !== undefined) await check(network, plan, question, ++sourcePort);
          }),
        );
      }),
      { numRuns: Number(process.env['PACKET_RUNS'] ?? 12) },
    );
  });
});

/** A packet from a machine, and the node that it comes to. */
interface Question {
  readonly from: string;
  readonly node: string;
  readonly family: IPFamily;
  readonly protocol: 'TCP' | 'UDP';
  readonly address: string;
  readonly port: number;
}

async function check(
  network: TestNetwork,
  plan: ForwardingPlan,
  question: Question,
  sourcePort: number,
): Promise<void> {
  const { machine, addresses } = network.at(question.from);
  const from = addresses[question.family];
  const packet: Packet = {
    source: sourceOf(plan, from),
    sourceAddress: from,
    protocol: question.protocol,
    destinationAddress: question.address,
    destinationPort: question.port,
  };
  const verdict = verdictFor(plan, packet);
  if (verdict.verdict === 'pass') return;
  const ask = (fromPort: number): Promise<Outcome> =>
    machine.ask(question.address, question.port, {
      ...{ protocol: question.protocol, from, fromPort },
      ...(verdict.verdict === 'drop' ? { timeout: silence } : {}),
    });
  const outcome = await ask(sourcePort);
  const context = JSON.stringify({ question, outcome, verdict }, undefined, 1);
  if (verdict.verdict !== 'forward') {
    expect(outcome, context).toBe(verdict.verdict === 'reject' ? 'refused' : 'silence');
    return;
  }
  if (typeof outcome === 'string') throw new Error(context);
  const candidate = verdict.candidates.find(
    ({ endpoint }) =>
      endpoint.port === outcome.port &&
      endpoint.address === network.at(outcome.name).addresses[question.family],
  );
  if (candidate === undefined) throw new Error(context);
  // Without masquerading it sees the client itself, and otherwise the node.
  expect(outcome.client === from, context).toBe(
    !candidate.masquerade || (packet.source === 'node' && isOnLan(outcome.client)),
  );
  if (verdict.affinitySeconds !== undefined) expect(await ask(sourcePort + 20_000), context).toEqual(outcome);
}

/** The node's own connection that is masqueraded shows the same address to an endpoint on another node. */
function isOnLan(address: string): boolean {
  return address.startsWith('192.0.2.') || address.startsWith('2001:db8::');
}

/** Everything that may be asked of the Services: each destination, from machines of every kind. */
function questions(network: TestNetwork, services: readonly Service[]): readonly Question[] {
  const asked: Question[] = [];
  for (const family of families) {
    const vips = services.flatMap(({ spec, status }) => [
      ...(spec.clusterIPs ?? []),
      ...(spec.externalIPs ?? []),
      ...(status.loadBalancer?.ingress ?? []).flatMap(({ ip }) => ip ?? []),
    ]);
    const own = vips.filter((vip) => vip.includes(':') === (family === 'IPv6'));
    const unused = family === 'IPv4' ? '10.96.0.99' : 'fd00:96::63';
    for (const [from, node] of [
      ...Object.entries(pods),
      ['node-1', 'node-1'],
      ['outside', 'node-1'],
    ] as const) {
      const add = (address: string, port: number, protocol: 'TCP' | 'UDP'): void => {
        asked.push({ from, node, family, address, port, protocol });
      };
      for (const address of own) {
        add(address, 80, 'TCP');
        add(address, 80, 'UDP');
      }
      if (from === 'a-1') {
        for (const address of own)
          if (address.startsWith('10.96') || address.startsWith('fd00:96')) add(address, 81, 'TCP');
        add(unused, 80, 'TCP');
      }
      for (const { spec } of services) {
        for (const { nodePort } of spec.ports ?? []) {
          if (nodePort !== undefined) add(network.at(node).addresses[family], nodePort, 'TCP');
        }
      }
    }
  }
  return asked;
}
