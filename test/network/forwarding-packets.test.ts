import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ForwardingPlan } from '../../src/network/forwarding/forwarding-plan.ts';
import { planForwarding } from '../../src/network/forwarding/forwarding-planner.ts';
import { type Packet, sourceOf, verdictFor } from '../../src/network/forwarding/verdict.ts';
import { NftablesWriter } from '../../src/node/nftables/nftables-writer.ts';
import type { EndpointSlice } from '../../src/objects/discovery.generated.ts';
import type { IPFamily } from '../../src/objects/address.ts';
import type { Service, ServiceSpec } from '../../src/objects/core.generated.ts';
import { missingFor } from './support/gate.ts';
import type { Outcome } from './support/machine-protocol.ts';
import { startNetwork, type TestNetwork } from './support/network.ts';
import { endpointSlice, forwardingNode, forwardingOptions, service } from './support/objects.ts';

const families = ['IPv4', 'IPv6'] as const satisfies readonly IPFamily[];
const nodes = ['node-1', 'node-2'] as const;
const pods = { 'a-1': 'node-1', 'b-1': 'node-1', 'c-2': 'node-2' } as const;
const podNames = ['a-1', 'b-1', 'c-2'] as const;
const targetPorts = [8080, 8081] as const;

/** Milliseconds in which a machine would have answered, or refused, were it not to stay silent. */
const silence = 500;

const missing = missingFor('user');

describe.skipIf(missing !== '')(`real packets${missing === '' ? '' : ` (missing: ${missing})`}`, () => {
  let network: TestNetwork;
  const writers = new Map<string, NftablesWriter>();

  beforeAll(async () => {
    network = await startNetwork('user', { 'node-1': ['a-1', 'b-1'], 'node-2': ['c-2'] });
    for (const name of podNames) {
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
      fc.asyncProperty(fc.noShrink(cases), async (specs) => {
        const services = servicesOf(specs);
        const slices = slicesOf(specs, network);
        const plans = new Map<string, ForwardingPlan>();
        for (const node of nodes) {
          const own = forwardingNode(node, network.at(node).addresses);
          const plan = planForwarding(services, slices, own, forwardingOptions);
          plans.set(node, plan);
          await writers.get(node)?.sync(plan);
          const { host } = network.at(node).machine;
          expect(await new NftablesWriter({ host }).sync(plan)).toEqual({ transactions: 0, elements: 0 });
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

const endpoints = fc.uniqueArray(
  fc.record({
    pod: fc.constantFrom(...podNames),
    ready: fc.boolean(),
    serving: fc.boolean(),
    terminating: fc.boolean(),
  }),
  { maxLength: 3, selector: ({ pod }) => pod },
);

interface Spec {
  readonly type: string;
  readonly internalTrafficPolicy: string;
  readonly externalTrafficPolicy: string;
  readonly sessionAffinity: string;
  readonly hasExternalIP: boolean;
  readonly ranges: readonly string[];
  readonly protocols: readonly string[];
  readonly targetPort: number;
  readonly endpoints: readonly {
    readonly pod: keyof typeof pods;
    readonly ready: boolean;
    readonly serving: boolean;
    readonly terminating: boolean;
  }[];
}

/** One or two Services with anything that matters to forwarding. */
const cases: fc.Arbitrary<readonly Spec[]> = fc.array(
  fc.record({
    type: fc.constantFrom('ClusterIP', 'NodePort', 'LoadBalancer'),
    internalTrafficPolicy: fc.constantFrom('Cluster', 'Local'),
    externalTrafficPolicy: fc.constantFrom('Cluster', 'Local'),
    sessionAffinity: fc.constantFrom('None', 'ClientIP'),
    hasExternalIP: fc.boolean(),
    ranges: fc.constantFrom<readonly string[]>(
      [],
      ['10.244.1.0/24', 'fd00:244:1::/64', '10.244.0.0/16'],
      ['192.0.2.2/32', '2001:db8::2/128'],
      ['203.0.113.0/24'],
    ),
    protocols: fc.constantFrom(['TCP'], ['UDP'], ['TCP', 'UDP']),
    targetPort: fc.constantFrom(...targetPorts),
    endpoints,
  }),
  { minLength: 1, maxLength: 2 },
);

function servicesOf(specs: readonly Spec[]): readonly Service[] {
  return specs.map(({ ranges, hasExternalIP, protocols, targetPort, endpoints: _, ...rest }, index) => {
    const number = index + 1;
    const isBalanced = rest.type === 'LoadBalancer';
    const spec: ServiceSpec = {
      ...rest,
      clusterIPs: [`10.96.0.${number}`, `fd00:96::${number}`],
      ports: protocols.map((protocol) => ({
        ...{ name: protocols.length > 1 ? protocol.toLowerCase() : '', protocol, port: 80, targetPort },
        ...(rest.type === 'ClusterIP' ? {} : { nodePort: 30_000 + number }),
      })),
      ...(hasExternalIP ? { externalIPs: [`203.0.113.${number}`] } : {}),
      ...(isBalanced ? { loadBalancerSourceRanges: [...ranges] } : {}),
    };
    return service(spec, `web-${number}`, isBalanced ? [`203.0.113.${number + 100}`] : []);
  });
}

function slicesOf(specs: readonly Spec[], network: TestNetwork): readonly EndpointSlice[] {
  return specs.flatMap(({ endpoints, protocols, targetPort }, index) =>
    families.map((family) => {
      const located = endpoints.map(({ pod, ...conditions }) => ({
        ...{ address: network.at(pod).addresses[family], node: pods[pod] },
        ...conditions,
      }));
      return endpointSlice(family, located, targetPort, `web-${index + 1}`, protocols);
    }),
  );
}
