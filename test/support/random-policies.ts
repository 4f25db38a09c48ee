/** Random NetworkPolicies, and Pods for them: few names, so that much of it meets. */
import fc from 'fast-check';
import type { LabelSelector } from '../../src/objects/meta.ts';
import type { ContainerPort, Namespace, Pod } from '../../src/objects/types/core.generated.ts';
import type {
  NetworkPolicy,
  NetworkPolicyPeer,
  NetworkPolicyPort,
} from '../../src/objects/types/networking.generated.ts';

/** Where a Pod is. */
export interface PodPlace {
  readonly name: string;
  readonly node: string;
  /** One of each family, or of one. */
  readonly addresses: readonly string[];
  readonly hostNetwork?: boolean;
}

const values = fc.constantFrom('a', 'b');
const namespaceNames = ['x', 'y'] as const;

const labels = fc.dictionary(fc.constantFrom('app', 'tier'), values, { maxKeys: 2 });

const selector: fc.Arbitrary<LabelSelector> = fc.oneof(
  fc.constant({}),
  fc.record({ matchLabels: labels }),
  fc.record({
    matchExpressions: fc.array(
      fc.oneof(
        fc.record({
          key: fc.constantFrom('app', 'tier'),
          operator: fc.constantFrom('In', 'NotIn'),
          values: fc.uniqueArray(values, { minLength: 1 }),
        }),
        fc.record({
          key: fc.constantFrom('app', 'tier'),
          operator: fc.constantFrom('Exists', 'DoesNotExist'),
        }),
      ),
      { maxLength: 2 },
    ),
  }),
);

/** @param blocks CIDRs with what may be excepted from each. */
function peer(blocks: Readonly<Record<string, readonly string[]>>): fc.Arbitrary<NetworkPolicyPeer> {
  const ipBlock = fc
    .constantFrom(...Object.entries(blocks))
    .chain(([cidr, excepts]) =>
      fc.subarray([...excepts]).map((except) => ({ ipBlock: { cidr, ...(except.length && { except }) } })),
    );
  return fc.oneof(
    fc.record({ podSelector: selector }),
    fc.record({ namespaceSelector: selector }),
    fc.record({ namespaceSelector: selector, podSelector: selector }),
    ipBlock,
  );
}

const port: fc.Arbitrary<NetworkPolicyPort> = fc.oneof(
  fc.record({ protocol: fc.constantFrom('TCP', 'UDP') }),
  fc.record({ port: fc.constantFrom(8080, 8081) }),
  fc.record({ port: fc.constantFrom(8080, 8081), protocol: fc.constantFrom('TCP', 'UDP') }),
  fc.record({ port: fc.constantFrom('first', 'second'), protocol: fc.constantFrom('TCP', 'UDP') }),
  fc.constant({ port: 8081, endPort: 9000 }),
);

/** A policy of either namespace. */
export function randomPolicy(
  name: string,
  blocks: Readonly<Record<string, readonly string[]>>,
): fc.Arbitrary<NetworkPolicy> {
  const few = { maxLength: 2 };
  const rules = (peers: 'from' | 'to'): fc.Arbitrary<Record<string, unknown>[]> =>
    fc.array(
      fc.record({ [peers]: fc.array(peer(blocks), few), ports: fc.array(port, few) }, { requiredKeys: [] }),
      few,
    );
  return fc
    .record({
      namespace: fc.constantFrom(...namespaceNames),
      podSelector: selector,
      policyTypes: fc.constantFrom<string[] | undefined>(
        undefined,
        ['Ingress'],
        ['Egress'],
        ['Ingress', 'Egress'],
      ),
      ingress: fc.option(rules('from'), { nil: undefined }),
      egress: fc.option(rules('to'), { nil: undefined }),
    })
    .map(({ namespace, podSelector, policyTypes, ingress, egress }) => ({
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { namespace, name },
      spec: {
        podSelector,
        ...(policyTypes === undefined ? {} : { policyTypes }),
        ...(ingress === undefined ? {} : { ingress }),
        ...(egress === undefined ? {} : { egress }),
      },
    }));
}

/** The namespaces, with labels. */
export const randomNamespaces: fc.Arbitrary<readonly Namespace[]> = fc.tuple(labels, labels).map((each) =>
  namespaceNames.map((name, i) => ({
    ...{ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: each[i] ?? {} } },
    ...{ spec: {}, status: {} },
  })),
);

const containerPorts: fc.Arbitrary<ContainerPort[]> = fc.uniqueArray(
  fc.record({
    name: fc.constantFrom('first', 'second'),
    containerPort: fc.constantFrom(8080, 8081),
    protocol: fc.constantFrom('TCP', 'UDP'),
  }),
  { maxLength: 2, selector: ({ name }) => name },
);

/** The Pod of a place, in either namespace. */
export function randomPod({ name, node, addresses, hostNetwork }: PodPlace): fc.Arbitrary<Pod> {
  return fc
    .record({ namespace: fc.constantFrom(...namespaceNames), labels, ports: containerPorts })
    .map(({ namespace, labels: own, ports }) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { namespace, name, labels: own },
      spec: {
        nodeName: node,
        ...(hostNetwork === true ? { hostNetwork } : {}),
        containers: [{ name: 'main', image: 'x', ports }],
      },
      status: { phase: 'Running', podIPs: addresses.map((ip) => ({ ip })) },
    }));
}
