/** A cluster of two namespaces, and policies at random. */
import fc from 'fast-check';
import type { PolicyPod, PolicySide } from '../../../../src/network/policy/network-policy.ts';
import { joinKey } from '../../../../src/objects/meta.ts';
import type { LabelSelector } from '../../../../src/objects/meta.ts';
import type { NetworkPolicy, NetworkPolicySpec } from '../../../../src/objects/types/networking.generated.ts';
import type { BrutePod } from './brute-force.ts';

export const namespaces = { x: { team: 'a' }, y: { team: 'b', kind: 'test' } } as const;

function pod(namespace: 'x' | 'y', name: string, host: number, more: Partial<BrutePod> = {}): BrutePod {
  const ports = [{ name: 'http', protocol: 'TCP', containerPort: 80 + host }];
  const address = `10.0.${namespace === 'x' ? 1 : 2}.${host}`;
  return {
    ...{ namespace, name, labels: { pod: name }, address, node: 'n1', hostNetwork: false, ports },
    ...more,
  };
}

export const pods = [
  ...(['x', 'y'] as const).flatMap((namespace) => ['a', 'b', 'c'].map((name, i) => pod(namespace, name, i))),
  pod('x', 'host', 9, { address: '192.168.0.1', hostNetwork: true }),
];

export function policy(spec: Partial<NetworkPolicySpec>, namespace = 'x', name = 'p'): NetworkPolicy {
  return { metadata: { namespace, name }, spec: { podSelector: {}, ...spec } };
}

export function sideOf(given: BrutePod | string): PolicySide {
  return typeof given === 'string' ? { kind: 'other' } : podOf(given);
}

export function podOf(given: BrutePod): PolicyPod {
  const { namespace, name, labels, node, hostNetwork, ports } = given;
  return {
    ...{ kind: 'pod', key: joinKey(namespace, name), namespace, labels, node, hostNetwork },
    namespaceLabels: namespace === 'x' ? namespaces.x : namespaces.y,
    ports: ports.map((each) => ({ name: each.name, protocol: each.protocol, port: each.containerPort })),
  };
}

const labelValue = fc.constantFrom('a', 'b', 'c', 'test');
const selector: fc.Arbitrary<LabelSelector> = fc.oneof(
  fc.constant({}),
  fc.record({ matchLabels: fc.dictionary(fc.constantFrom('pod', 'team'), labelValue, { maxKeys: 2 }) }),
  fc.record({
    matchExpressions: fc.array(
      fc.oneof(
        fc.record({
          key: fc.constantFrom('pod', 'team', 'kind'),
          operator: fc.constantFrom('In', 'NotIn'),
          values: fc.array(labelValue, { minLength: 1, maxLength: 2 }),
        }),
        fc.record({
          key: fc.constantFrom('team', 'kind'),
          operator: fc.constantFrom('Exists', 'DoesNotExist'),
        }),
      ),
      { maxLength: 2 },
    ),
  }),
);
const peer = fc.oneof(
  fc.record({ podSelector: selector }),
  fc.record({ namespaceSelector: selector }),
  fc.record({ podSelector: selector, namespaceSelector: selector }),
  fc.record({
    ipBlock: fc.record({
      cidr: fc.constantFrom('0.0.0.0/0', '10.0.0.0/8', '10.0.1.0/24', '192.168.0.0/16'),
      except: fc.array(fc.constantFrom('10.0.1.0/31', '10.0.2.2/32', '192.168.0.1/32'), { maxLength: 2 }),
    }),
  }),
);
const wantedPort = fc.oneof(
  fc.record({ port: fc.constantFrom(80, 81, 'http'), protocol: fc.constantFrom('TCP', 'UDP') }),
  fc.constant({ port: 79, endPort: 81 }),
  fc.constant({ protocol: 'UDP' }),
);
const rules = fc.array(
  fc.record(
    { peers: fc.array(peer, { maxLength: 2 }), ports: fc.array(wantedPort, { maxLength: 2 }) },
    { requiredKeys: [] },
  ),
  { maxLength: 2 },
);
export const randomPolicy = fc
  .record({
    namespace: fc.constantFrom('x', 'y'),
    podSelector: selector,
    ingress: fc.option(rules, { nil: undefined }),
    egress: fc.option(rules, { nil: undefined }),
    policyTypes: fc.option(fc.subarray(['Ingress', 'Egress'], { minLength: 1 }), { nil: undefined }),
  })
  .map(({ namespace, podSelector, ingress, egress, policyTypes }) =>
    policy(
      {
        podSelector,
        ...(ingress === undefined
          ? {}
          : { ingress: ingress.map(({ peers = [], ports = [] }) => ({ from: peers, ports })) }),
        ...(egress === undefined
          ? {}
          : { egress: egress.map(({ peers = [], ports = [] }) => ({ to: peers, ports })) }),
        ...(policyTypes === undefined ? {} : { policyTypes }),
      },
      namespace,
    ),
  );
