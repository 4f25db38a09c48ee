/**
 * The tests of Kubernetes' `test/e2e/network/netpol/network_policy.go` (1.36), each by its name and with its policies. Pods
 * are told apart by the label `app` here; who may reach whom is not written down: a matcher says so from the policies.
 */
import type { LabelSelector } from '../../../src/objects/meta.ts';
import type {
  NetworkPolicyEgressRule,
  NetworkPolicyIngressRule,
  NetworkPolicyPeer,
  NetworkPolicySpec,
} from '../../../src/objects/types/networking.generated.ts';
import type { PolicyCluster, Protocol } from './policies.ts';

/** One test of upstream. */
export interface PolicyScenario {
  readonly name: string;
  /** By which it connects; default TCP. */
  readonly protocols?: readonly Protocol[];
  /** Each step is looked at when it is done. */
  readonly steps: readonly ((cluster: PolicyCluster) => Promise<void>)[];
}

const pod = (name: string): LabelSelector => ({ matchLabels: { app: name } });
const podIn = (operator: 'In' | 'NotIn', ...values: string[]): LabelSelector => ({
  matchExpressions: [{ key: 'app', operator, values }],
});
const nameLabel = 'kubernetes.io/metadata.name';
const namespace = (name: string): LabelSelector => ({ matchLabels: { [nameLabel]: name } });
const namespaceIn = (operator: 'In' | 'NotIn', ...values: string[]): LabelSelector => ({
  matchExpressions: [{ key: nameLabel, operator, values }],
});

const apply =
  (inNamespace: string, spec: NetworkPolicySpec, name = 'p') =>
  (cluster: PolicyCluster): Promise<void> =>
    cluster.apply(inNamespace, name, spec);

/** Into Pod x/a, or the Pods of x that are selected. */
const ingress = (rules: NetworkPolicyIngressRule[], podSelector = pod('a')): NetworkPolicySpec => ({
  ...{ podSelector, policyTypes: ['Ingress'] },
  ingress: rules,
});
const from = (...peers: NetworkPolicyPeer[]): NetworkPolicySpec => ingress([{ from: peers }]);
/** Out of Pod x/a, or the Pods of x that are selected. */
const egress = (rules: NetworkPolicyEgressRule[], podSelector = pod('a')): NetworkPolicySpec => ({
  ...{ podSelector, policyTypes: ['Egress'] },
  egress: rules,
});
const denyIngress = ingress([], {});
const denyAll: NetworkPolicySpec = { podSelector: {}, policyTypes: ['Ingress', 'Egress'] };
const fromOnePodOfY = from({ namespaceSelector: namespace('y'), podSelector: pod('a') });

/** The tests that are run in every gate. */
export const shortScenarios: readonly PolicyScenario[] = [
  { name: "should support a 'default-deny-all' policy", steps: [apply('x', denyAll)] },
  {
    name: 'should enforce policy to allow traffic only from a pod in a different namespace based on PodSelector and NamespaceSelector',
    steps: [apply('x', fromOnePodOfY)],
  },
  {
    name: 'should enforce updated policy',
    steps: [apply('x', ingress([{}], {})), apply('x', denyIngress)],
  },
  {
    name: 'should allow ingress access on one named port',
    steps: [apply('x', ingress([{ ports: [{ port: 'http' }] }], {}))],
  },
  {
    name: 'should allow egress access on one named port',
    steps: [apply('x', egress([{ ports: [{ port: 'http' }] }], {}))],
  },
  {
    name: 'should allow ingress access from updated namespace',
    steps: [
      apply('x', from({ namespaceSelector: { matchLabels: { ns2: 'updated' } } })),
      (cluster) => cluster.labelNamespace('y', { ns2: 'updated' }),
      (cluster) => cluster.labelNamespace('y', { ns2: null }),
    ],
  },
  {
    name: 'should ensure an IP overlapping both IPBlock.CIDR and IPBlock.Except is allowed',
    steps: [
      async (cluster) => {
        const except = [`${cluster.addressOf('x', 'b')}/32`];
        await cluster.apply('x', 'p', egress([{ to: [{ ipBlock: { cidr: '0.0.0.0/4', except } }] }]));
      },
      async (cluster) => {
        const cidr = `${cluster.addressOf('x', 'b')}/32`;
        await cluster.apply('x', 'p', egress([{ to: [{ ipBlock: { cidr } }] }]));
      },
    ],
  },
  {
    name: 'should stop enforcing policies after they are deleted',
    steps: [apply('x', denyAll), (cluster) => cluster.delete('x', 'p')],
  },
];

/** The others. */
export const longScenarios: readonly PolicyScenario[] = [
  { name: "should support a 'default-deny-ingress' policy", steps: [apply('x', denyIngress)] },
  {
    name: 'should enforce policy to allow traffic from pods within server namespace based on PodSelector',
    steps: [apply('x', from({ podSelector: pod('b') }))],
  },
  {
    name: 'should enforce policy to allow ingress traffic for a target',
    steps: [apply('x', denyIngress, 'deny'), apply('x', from({ namespaceSelector: {}, podSelector: {} }))],
  },
  {
    name: 'should enforce policy to allow ingress traffic from pods in all namespaces',
    steps: [apply('x', from({ namespaceSelector: { matchLabels: {} } }))],
  },
  {
    name: 'should enforce policy to allow traffic only from a different namespace, based on NamespaceSelector',
    steps: [apply('x', from({ namespaceSelector: namespace('y') }))],
  },
  {
    name: 'should enforce policy based on PodSelector with MatchExpressions',
    steps: [apply('x', from({ podSelector: podIn('In', 'b') }))],
  },
  {
    name: 'should enforce policy based on NamespaceSelector with MatchExpressions',
    steps: [apply('x', from({ namespaceSelector: namespaceIn('In', 'y') }))],
  },
  {
    name: 'should enforce policy based on PodSelector or NamespaceSelector',
    steps: [apply('x', from({ namespaceSelector: namespaceIn('NotIn', 'x') }, { podSelector: pod('b') }))],
  },
  {
    name: 'should enforce policy based on PodSelector and NamespaceSelector',
    steps: [apply('x', from({ namespaceSelector: namespaceIn('NotIn', 'x'), podSelector: pod('b') }))],
  },
  {
    name: 'should enforce policy based on Multiple PodSelectors and NamespaceSelectors',
    steps: [
      apply('x', from({ namespaceSelector: namespaceIn('NotIn', 'x'), podSelector: podIn('In', 'b', 'c') })),
    ],
  },
  {
    name: 'should enforce policy based on any PodSelectors',
    steps: [apply('x', from({ podSelector: pod('b') }, { podSelector: pod('c') }))],
  },
  {
    name: 'should enforce policy based on Ports',
    steps: [
      apply(
        'x',
        ingress([{ from: [{ namespaceSelector: namespace('y') }], ports: [{ protocol: 'TCP', port: 81 }] }]),
      ),
    ],
  },
  {
    name: 'should enforce multiple, stacked policies with overlapping podSelectors',
    steps: [81, 80].map((port) =>
      apply(
        'x',
        ingress([{ from: [{ namespaceSelector: namespace('y') }], ports: [{ protocol: 'TCP', port }] }]),
        `allow-${port}`,
      ),
    ),
  },
  { name: 'should support allow-all policy', steps: [apply('x', ingress([{}], {}))] },
  {
    name: 'should allow ingress access from namespace on one named port',
    steps: [
      apply('x', ingress([{ from: [{ namespaceSelector: namespace('y') }], ports: [{ port: 'http' }] }])),
    ],
  },
  {
    name: 'should allow ingress access from updated pod',
    steps: [
      apply('x', from({ podSelector: { matchLabels: { app: 'b', pod2: 'updated' } } })),
      (cluster) => cluster.labelPod('x', 'b', { pod2: 'updated' }),
      (cluster) => cluster.labelPod('x', 'b', { pod2: null }),
    ],
  },
  {
    name: 'should deny ingress from pods on other namespaces',
    steps: [apply('x', ingress([{ from: [{ podSelector: { matchLabels: {} } }] }], {}))],
  },
  {
    name: 'should deny ingress access to updated pod',
    steps: [
      apply('x', ingress([], { matchLabels: { target: 'isolated' } })),
      (cluster) => cluster.labelPod('x', 'a', { target: 'isolated' }),
      (cluster) => cluster.labelPod('x', 'a', { target: null }),
    ],
  },
  {
    name: 'should deny egress from pods based on PodSelector',
    steps: [apply('x', egress([]))],
  },
  {
    name: 'should deny egress from all pods in a namespace',
    steps: [apply('x', egress([], {}))],
  },
  {
    name: 'should work with Ingress, Egress specified together',
    steps: [
      apply('x', {
        ...{ podSelector: pod('a'), policyTypes: ['Egress', 'Ingress'] },
        ingress: [{ from: [{ podSelector: pod('b') }] }],
        egress: [{ ports: [{ port: 80 }] }],
      }),
    ],
  },
  {
    name: 'should support denying of egress traffic on the client side (even if the server explicitly allows this traffic)',
    steps: [
      apply('x', egress([{ to: [{ namespaceSelector: namespace('y'), podSelector: pod('a') }] }])),
      ...['a', 'b'].map((server) =>
        apply(
          'y',
          ingress([{ from: [{ namespaceSelector: namespace('x'), podSelector: pod('a') }] }], pod(server)),
          `to-${server}`,
        ),
      ),
    ],
  },
  {
    name: 'should enforce egress policy allowing traffic to a server in a different namespace based on PodSelector and NamespaceSelector',
    steps: [apply('x', egress([{ to: [{ namespaceSelector: namespace('y'), podSelector: pod('a') }] }]))],
  },
  {
    name: 'should enforce ingress policy allowing any port traffic to a server on a specific protocol',
    protocols: ['TCP', 'UDP'],
    steps: [apply('x', ingress([{ ports: [{ protocol: 'TCP' }] }]))],
  },
  {
    name: 'should enforce multiple ingress policies with ingress allow-all policy taking precedence',
    steps: [apply('x', ingress([{ ports: [{ port: 80 }] }], {})), apply('x', ingress([{}], {}), 'q')],
  },
  {
    name: 'should enforce multiple egress policies with egress allow-all policy taking precedence',
    steps: [apply('x', egress([{ ports: [{ port: 80 }] }], {})), apply('x', egress([{}], {}), 'q')],
  },
  {
    name: 'should allow egress access to server in CIDR block',
    steps: [
      async (cluster) => {
        const cidr = `${cluster.addressOf('y', 'b')}/32`;
        await cluster.apply('x', 'p', egress([{ to: [{ ipBlock: { cidr } }] }]));
      },
    ],
  },
  {
    name: 'should enforce except clause while egress access to server in CIDR block',
    steps: [
      async (cluster) => {
        const except = [`${cluster.addressOf('x', 'b')}/32`];
        await cluster.apply('x', 'p', egress([{ to: [{ ipBlock: { cidr: '0.0.0.0/4', except } }] }]));
      },
    ],
  },
  {
    name: 'should enforce policies to check ingress and egress policies can be controlled independently based on PodSelector',
    steps: [apply('x', egress([{}])), apply('x', ingress([]), 'q')],
  },
  {
    name: "should not mistakenly treat 'protocol: SCTP' as 'protocol: TCP', even if the plugin doesn't support SCTP",
    steps: [
      apply('x', denyIngress, 'deny'),
      apply('x', ingress([{ ports: [{ protocol: 'SCTP', port: 81 }] }])),
    ],
  },
  {
    name: "should properly isolate pods that are selected by a policy allowing SCTP, even if the plugin doesn't support SCTP",
    steps: [apply('x', ingress([{ ports: [{ protocol: 'SCTP', port: 80 }] }]))],
  },
  {
    name: 'should not allow access by TCP when a policy specifies only UDP',
    steps: [apply('x', ingress([{ ports: [{ protocol: 'UDP', port: 81 }] }]))],
  },
  {
    name: 'should enforce policy to allow traffic based on NamespaceSelector with MatchLabels using default ns label',
    steps: [apply('x', from({ namespaceSelector: namespace('y') }))],
  },
  {
    name: 'should enforce policy based on NamespaceSelector with MatchExpressions using default ns label',
    steps: [apply('x', egress([{ to: [{ namespaceSelector: namespaceIn('NotIn', 'y') }] }]))],
  },
];

/** The tests of the suites `NetworkPolicy between server and client using UDP` and `using SCTP`. */
export function scenariosUsing(protocol: 'UDP' | 'SCTP'): readonly PolicyScenario[] {
  const protocols = [protocol];
  return [
    { name: "should support a 'default-deny-ingress' policy", protocols, steps: [apply('x', denyIngress)] },
    {
      ...{ name: 'should enforce policy based on Ports', protocols },
      steps: [
        apply(
          'x',
          ingress([{ from: [{ namespaceSelector: namespace('y') }], ports: [{ protocol, port: 81 }] }]),
        ),
      ],
    },
    {
      name: 'should enforce policy to allow traffic only from a pod in a different namespace based on PodSelector and NamespaceSelector',
      protocols,
      steps: [apply('x', fromOnePodOfY)],
    },
  ];
}
