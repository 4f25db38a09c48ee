import { spawnSync } from 'node:child_process';
import { expect } from 'vitest';
import { listAt, textAt } from '../../../src/objects/read.ts';
import type { LabelSelector } from '../../../src/objects/meta.ts';
import type { NetworkPolicy, NetworkPolicySpec } from '../../../src/objects/types/networking.generated.ts';
import { bruteForce, type BrutePod } from '../../unit/network/policy/brute-force.ts';
import { PodNetwork } from './pod-network.ts';

/** Seconds: of a connection that is let through, on a busy machine; of one that is dropped. */
const patience = { allowed: 20, dropped: 0.7 };

/** How a connection is tried; what it prints nothing of has not come about. */
const tries = {
  TCP: (address: string, port: number) => `bash -c 'exec 3<>/dev/tcp/${address}/${port}'`,
  // A datagram may be lost to the rules of before: it is sent again, and its echo is the answer.
  UDP: (address: string, port: number) =>
    `bash -c 'exec 3<>/dev/udp/${address}/${port}; until read -r -t 0.2 -N 1 -u 3 x; do echo hi >&3; done'`,
  SCTP: (address: string, port: number) =>
    `python3 -c 'import socket; socket.socket(2, 1, 132).connect(("${address}", ${port}))'`,
};

type Protocol = keyof typeof tries;

/** Whether the kernel knows SCTP. */
export const hasSctp = spawnSync('python3', ['-c', 'import socket; socket.socket(2, 1, 132)']).status === 0;

/** Listens on 80 and 81 by SCTP for two minutes. */
const sctpServer = `
import socket, time
servers = [socket.socket(2, 1, 132) for port in (80, 81)]
for server, port in zip(servers, (80, 81)):
    server.bind(("0.0.0.0", port)); server.listen(64)
time.sleep(120)
`;

/** Namespaces x and y, each with the Pods a and b, which listen on 80 and 81 by TCP and UDP. */
export class PolicyCluster {
  readonly network: PodNetwork;
  readonly namespaces: Record<string, Record<string, string>> = {};
  #pods: readonly BrutePod[] = [];
  /** By namespace and name. */
  readonly #policies = new Map<string, NetworkPolicy>();

  private constructor(network: PodNetwork) {
    this.network = network;
  }

  static async start(): Promise<PolicyCluster> {
    const cluster = new PolicyCluster(await PodNetwork.start({ nodes: 2, platform: 'openshift' }));
    for (const name of ['x', 'y']) {
      const inside = await cluster.network.inNamespace(name);
      for (const [i, pod] of ['a', 'b'].entries()) {
        const ports = [
          { name: 'http', containerPort: 80 + i },
          { name: 'other', containerPort: 81 - i },
          { name: 'datagrams', containerPort: 80 + i, protocol: 'UDP' },
          { name: 'others', containerPort: 81 - i, protocol: 'UDP' },
        ];
        await inside.pod(
          pod,
          pod,
          { ports },
          { spec: { nodeName: `node-${1 + ((i + (name === 'x' ? 0 : 1)) % 2)}` } },
        );
        await inside.running(pod, 1);
      }
    }
    await cluster.labelNamespace('x', {});
    await cluster.labelNamespace('y', {});
    return cluster;
  }

  /** Lets all Pods listen by SCTP too, until the cluster ends. */
  async serveSctp(): Promise<void> {
    this.#pods = await this.#readPods();
    for (const { namespace, name } of this.#pods) {
      const ended = this.network.server.run(['python3', '-c', sctpServer], { pod: `${namespace}/${name}` });
      // It ends with the network at the latest.
      ended.catch(() => undefined);
    }
  }

  /** Of a Pod, as it was when reachability was last looked at. */
  addressOf(namespace: string, name: string): string {
    const found = this.#pods.find((each) => each.namespace === namespace && each.name === name);
    return found?.address ?? expect.unreachable(`no Pod ${namespace}/${name}`);
  }

  /** Adds labels to a namespace. */
  async labelNamespace(name: string, labels: Record<string, string | null>): Promise<void> {
    const { body } = await this.network.call('PATCH', `/api/v1/namespaces/${name}`, { metadata: { labels } });
    const found = Object.entries((body['metadata'] as { labels?: Record<string, string> }).labels ?? {});
    this.namespaces[name] = Object.fromEntries(found);
  }

  /** Adds labels to a Pod. */
  async labelPod(namespace: string, name: string, labels: Record<string, string | null>): Promise<void> {
    await this.network.call('PATCH', `/api/v1/namespaces/${namespace}/pods/${name}`, {
      metadata: { labels },
    });
  }

  /** Creates or replaces a policy. */
  async apply(namespace: string, name: string, spec: NetworkPolicySpec): Promise<void> {
    expect(await this.#put(namespace, name, spec)).toBeUndefined();
  }

  /** The same, unless the API server refuses it: policies at random may have exceptions outside of their block. */
  async applyIfValid(namespace: string, name: string, spec: NetworkPolicySpec): Promise<void> {
    const refusal = await this.#put(namespace, name, spec);
    if (refusal !== undefined) expect(refusal).toContain('must be a strict subset');
  }

  /** @returns why it is refused. */
  async #put(namespace: string, name: string, spec: NetworkPolicySpec): Promise<unknown> {
    const path = `/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies`;
    const metadata = { namespace, name };
    const policy = { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata, spec };
    const key = `${namespace}/${name}`;
    const { status, body } = this.#policies.has(key)
      ? await this.network.call('PUT', `${path}/${name}`, policy)
      : await this.network.call('POST', path, policy);
    if (status >= 300) return body['message'];
    this.#policies.set(key, policy);
    return undefined;
  }

  async delete(namespace: string, name: string): Promise<void> {
    await this.network.call(
      'DELETE',
      `/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies/${name}`,
    );
    this.#policies.delete(`${namespace}/${name}`);
  }

  async deleteAll(): Promise<void> {
    for (const key of this.#policies.keys()) {
      const [namespace = '', name = ''] = key.split('/');
      await this.delete(namespace, name);
    }
  }

  /** Waits until every Pod reaches whom the policies let it reach by their words, and nobody else. */
  async expectReachability(protocol: Protocol = 'TCP'): Promise<void> {
    this.#pods = await this.#readPods();
    const expected = this.#allowed(protocol);
    await expect
      .poll(() => this.#reached(protocol, expected), { timeout: 60_000, interval: 100 })
      .toEqual([...expected].sort());
  }

  async #readPods(): Promise<readonly BrutePod[]> {
    const pods: BrutePod[] = [];
    for (const namespace of ['x', 'y']) {
      const { body } = await this.network.call('GET', `/api/v1/namespaces/${namespace}/pods`);
      for (const pod of listAt(body, 'items')) {
        const labels = (pod as { metadata: { labels: Record<string, string> } }).metadata.labels;
        pods.push({
          ...{ namespace, name: textAt(pod, 'metadata', 'name'), labels, hostNetwork: false },
          ...{ address: textAt(pod, 'status', 'podIP'), node: textAt(pod, 'spec', 'nodeName') },
          ports: listAt(pod, 'spec', 'containers').flatMap((container) =>
            listAt(container, 'ports').map((port) => ({
              ...{ name: textAt(port, 'name'), protocol: textAt(port, 'protocol') },
              containerPort: Number(Reflect.get(port as object, 'containerPort')),
            })),
          ),
        });
      }
    }
    return pods;
  }

  /** `x/a y/b 80`: what the policies let through, by a matcher written from their documentation. */
  #allowed(protocol: Protocol): ReadonlySet<string> {
    const world = { namespaces: this.namespaces, policies: [...this.#policies.values()] };
    const pairs = this.#pods.flatMap((from) =>
      this.#pods.flatMap((to) => [80, 81].map((port) => ({ from, to, port }))),
    );
    return new Set(
      pairs
        .filter(({ from, to, port }) =>
          (['Egress', 'Ingress'] as const).every((direction) =>
            bruteForce(world, direction, from, to, protocol, port),
          ),
        )
        .map(nameOf),
    );
  }

  async #reached(protocol: Protocol, expected: ReadonlySet<string>): Promise<readonly string[]> {
    const found = await Promise.all(
      this.#pods.map(async (from) => {
        const commands = this.#pods.flatMap((to) =>
          [80, 81].map((port) => {
            const name = nameOf({ from, to, port });
            const seconds = expected.has(name) ? patience.allowed : patience.dropped;
            return `( timeout ${seconds} ${tries[protocol](to.address, port)} && echo '${name}' ) 2>&- &`;
          }),
        );
        const script = `${commands.join('\n')}\nwait`;
        const { stdout } = await this.network.server.run(['bash', '-c', script], {
          pod: `${from.namespace}/${from.name}`,
        });
        return stdout.split('\n').filter((line) => line !== '');
      }),
    );
    return found.flat().sort();
  }
}

function nameOf({ from, to, port }: { from: BrutePod; to: BrutePod; port: number }): string {
  return `${from.namespace}/${from.name} ${to.namespace}/${to.name} ${port}`;
}

const pod = (name: string): LabelSelector => ({ matchLabels: { app: name } });
const namespace = (name: string): LabelSelector => ({ matchLabels: { 'kubernetes.io/metadata.name': name } });

/** The tests of the suites `NetworkPolicy between server and client using UDP` and `using SCTP`. */
export function scenariosUsing(protocol: 'UDP' | 'SCTP'): readonly PolicyScenario[] {
  return [
    {
      name: "should support a 'default-deny-ingress' policy",
      steps: [apply('x', { podSelector: {}, ingress: [] })],
    },
    {
      name: 'should enforce policy based on Ports',
      steps: [
        apply('x', {
          podSelector: pod('a'),
          ingress: [{ from: [{ namespaceSelector: namespace('y') }], ports: [{ protocol, port: 81 }] }],
        }),
      ],
    },
    {
      name: 'should enforce policy to allow traffic only from a pod in a different namespace based on PodSelector and NamespaceSelector',
      steps: [
        apply('x', {
          podSelector: pod('a'),
          ingress: [{ from: [{ namespaceSelector: namespace('y'), podSelector: pod('a') }] }],
        }),
      ],
    },
  ];
}

/** A test of `test/e2e/network/netpol/network_policy.go`, by its name. */
export interface PolicyScenario {
  readonly name: string;
  /** Each step is looked at when it is done. */
  readonly steps: readonly ((cluster: PolicyCluster) => Promise<void>)[];
}

const apply =
  (inNamespace: string, spec: NetworkPolicySpec, name = 'p') =>
  (cluster: PolicyCluster): Promise<void> =>
    cluster.apply(inNamespace, name, spec);

/** The tests that are run in every gate. */
export const shortScenarios: readonly PolicyScenario[] = [
  {
    name: "should support a 'default-deny-all' policy",
    steps: [apply('x', { podSelector: {}, policyTypes: ['Ingress', 'Egress'] })],
  },
  {
    name: 'should enforce policy to allow traffic only from a pod in a different namespace based on PodSelector and NamespaceSelector',
    steps: [
      apply('x', {
        podSelector: pod('a'),
        ingress: [{ from: [{ namespaceSelector: namespace('y'), podSelector: pod('a') }] }],
      }),
    ],
  },
  {
    name: 'should enforce updated policy',
    steps: [apply('x', { podSelector: {}, ingress: [{}] }), apply('x', { podSelector: {}, ingress: [] })],
  },
  {
    name: 'should allow ingress access on one named port',
    steps: [apply('x', { podSelector: {}, ingress: [{ ports: [{ port: 'http' }] }] })],
  },
  {
    name: 'should allow egress access on one named port',
    steps: [
      apply('x', { podSelector: pod('a'), policyTypes: ['Egress'], egress: [{ ports: [{ port: 'http' }] }] }),
    ],
  },
  {
    name: 'should allow ingress access from updated namespace',
    steps: [
      apply('x', {
        podSelector: pod('a'),
        ingress: [{ from: [{ namespaceSelector: { matchLabels: { updated: 'yes' } } }] }],
      }),
      (cluster) => cluster.labelNamespace('y', { updated: 'yes' }),
      (cluster) => cluster.labelNamespace('y', { updated: null }),
    ],
  },
  {
    name: 'should ensure an IP overlapping both IPBlock.CIDR and IPBlock.Except is allowed',
    steps: [
      apply('x', {
        podSelector: pod('a'),
        ingress: [{ from: [{ ipBlock: { cidr: '0.0.0.0/0', except: ['10.244.0.0/16'] } }] }],
      }),
      apply(
        'x',
        { podSelector: pod('a'), ingress: [{ from: [{ ipBlock: { cidr: '10.244.0.0/16' } }] }] },
        'q',
      ),
    ],
  },
  {
    name: 'should stop enforcing policies after they are deleted',
    steps: [
      apply('x', { podSelector: {}, policyTypes: ['Ingress', 'Egress'] }),
      (cluster) => cluster.delete('x', 'p'),
    ],
  },
];

/** The others. */
export const longScenarios: readonly PolicyScenario[] = [
  {
    name: "should support a 'default-deny-ingress' policy",
    steps: [apply('x', { podSelector: {}, ingress: [] })],
  },
  {
    name: 'should enforce policy to allow traffic from pods within server namespace based on PodSelector',
    steps: [apply('x', { podSelector: pod('a'), ingress: [{ from: [{ podSelector: pod('b') }] }] })],
  },
  {
    name: 'should enforce policy to allow ingress traffic for a target',
    steps: [
      apply('x', { podSelector: {}, ingress: [] }, 'deny'),
      apply('x', { podSelector: pod('a'), ingress: [{ from: [{ namespaceSelector: {} }] }] }),
    ],
  },
  {
    name: 'should enforce policy to allow ingress traffic from pods in all namespaces',
    steps: [apply('x', { podSelector: pod('a'), ingress: [{ from: [{ namespaceSelector: {} }] }] })],
  },
  {
    name: 'should enforce policy to allow traffic only from a different namespace, based on NamespaceSelector',
    steps: [
      apply('x', { podSelector: pod('a'), ingress: [{ from: [{ namespaceSelector: namespace('y') }] }] }),
    ],
  },
  {
    name: 'should enforce policy based on PodSelector with MatchExpressions',
    steps: [
      apply('x', {
        podSelector: pod('a'),
        ingress: [
          { from: [{ podSelector: { matchExpressions: [{ key: 'app', operator: 'In', values: ['b'] }] } }] },
        ],
      }),
    ],
  },
  {
    name: 'should enforce policy based on PodSelector and NamespaceSelector',
    steps: [
      apply('x', {
        podSelector: pod('a'),
        ingress: [{ from: [{ namespaceSelector: namespace('y'), podSelector: pod('b') }] }],
      }),
    ],
  },
  {
    name: 'should enforce policy based on Multiple PodSelectors and NamespaceSelectors',
    steps: [
      apply('x', {
        podSelector: pod('a'),
        ingress: [
          {
            from: [
              {
                namespaceSelector: {
                  matchExpressions: [
                    { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['x'] },
                  ],
                },
                podSelector: {
                  matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['a', 'c'] }],
                },
              },
            ],
          },
        ],
      }),
    ],
  },
  {
    name: 'should enforce policy based on any PodSelectors',
    steps: [
      apply('x', {
        podSelector: pod('a'),
        ingress: [
          {
            from: [
              { namespaceSelector: {}, podSelector: pod('b') },
              { namespaceSelector: {}, podSelector: pod('c') },
            ],
          },
        ],
      }),
    ],
  },
  {
    name: 'should allow ingress access from namespace on one named port',
    steps: [
      apply('x', {
        podSelector: pod('a'),
        ingress: [{ from: [{ namespaceSelector: namespace('y') }], ports: [{ port: 'other' }] }],
      }),
    ],
  },
  {
    name: 'should deny ingress from pods on other namespaces',
    steps: [apply('x', { podSelector: {}, ingress: [{ from: [{ podSelector: {} }] }] })],
  },
  {
    name: "should properly isolate pods that are selected by a policy allowing SCTP, even if the plugin doesn't support SCTP",
    steps: [apply('x', { podSelector: pod('a'), ingress: [{ ports: [{ protocol: 'SCTP', port: 80 }] }] })],
  },
  {
    name: 'should not allow access by TCP when a policy specifies only UDP',
    steps: [apply('x', { podSelector: pod('a'), ingress: [{ ports: [{ protocol: 'UDP', port: 81 }] }] })],
  },
  {
    name: 'should enforce policy based on NamespaceSelector with MatchExpressions',
    steps: [
      apply('x', {
        podSelector: pod('a'),
        ingress: [
          {
            from: [
              {
                namespaceSelector: {
                  matchExpressions: [
                    { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['x'] },
                  ],
                },
              },
            ],
          },
        ],
      }),
    ],
  },
  {
    name: 'should enforce policy based on PodSelector or NamespaceSelector',
    steps: [
      apply('x', {
        podSelector: {},
        ingress: [{ from: [{ namespaceSelector: namespace('y') }, { podSelector: pod('b') }] }],
      }),
    ],
  },
  {
    name: 'should enforce policy based on Ports',
    steps: [
      apply('x', {
        podSelector: pod('a'),
        ingress: [{ from: [{ namespaceSelector: namespace('y') }], ports: [{ port: 81 }] }],
      }),
    ],
  },
  {
    name: 'should enforce multiple, stacked policies with overlapping podSelectors',
    steps: [
      apply('x', { podSelector: pod('a'), ingress: [{ ports: [{ port: 80 }] }] }),
      apply('x', { podSelector: {}, ingress: [{ from: [{ podSelector: {} }], ports: [{ port: 81 }] }] }, 'q'),
    ],
  },
  { name: 'should support allow-all policy', steps: [apply('x', { podSelector: {}, ingress: [{}] })] },
  {
    name: 'should allow ingress access from updated pod',
    steps: [
      apply('x', {
        podSelector: pod('a'),
        ingress: [{ from: [{ podSelector: { matchLabels: { updated: 'yes' } } }] }],
      }),
      (cluster) => cluster.labelPod('x', 'b', { updated: 'yes' }),
      (cluster) => cluster.labelPod('x', 'b', { updated: null }),
    ],
  },
  {
    name: 'should deny ingress access to updated pod',
    steps: [
      apply('x', { podSelector: { matchLabels: { target: 'isolated' } }, ingress: [] }),
      (cluster) => cluster.labelPod('x', 'a', { target: 'isolated' }),
      (cluster) => cluster.labelPod('x', 'a', { target: null }),
    ],
  },
  {
    name: 'should deny egress from pods based on PodSelector',
    steps: [apply('x', { podSelector: pod('a'), policyTypes: ['Egress'] })],
  },
  {
    name: 'should deny egress from all pods in a namespace',
    steps: [apply('x', { podSelector: {}, policyTypes: ['Egress'] })],
  },
  {
    name: 'should work with Ingress, Egress specified together',
    steps: [
      apply('x', {
        ...{ podSelector: pod('a'), policyTypes: ['Ingress', 'Egress'] },
        ingress: [{ from: [{ namespaceSelector: namespace('y'), podSelector: pod('b') }] }],
        egress: [{ to: [{ namespaceSelector: namespace('y') }], ports: [{ port: 80, endPort: 80 }] }],
      }),
    ],
  },
  {
    name: 'should support denying of egress traffic on the client side (even if the server explicitly allows this traffic)',
    steps: [
      apply('x', {
        ...{ podSelector: pod('a'), policyTypes: ['Egress'] },
        egress: [{ to: [{ namespaceSelector: namespace('y'), podSelector: pod('a') }] }],
      }),
      apply('y', { podSelector: {}, ingress: [{ from: [{ namespaceSelector: namespace('x') }] }] }),
    ],
  },
  {
    name: 'should enforce egress policy allowing traffic to a server in a different namespace based on PodSelector and NamespaceSelector',
    steps: [
      apply('x', {
        ...{ podSelector: pod('a'), policyTypes: ['Egress'] },
        egress: [{ to: [{ namespaceSelector: namespace('y'), podSelector: pod('a') }] }],
      }),
    ],
  },
  {
    name: 'should enforce multiple ingress policies with ingress allow-all policy taking precedence',
    steps: [
      apply('x', { podSelector: {}, ingress: [{ ports: [{ port: 80 }] }] }),
      apply('x', { podSelector: {}, ingress: [{}] }, 'q'),
    ],
  },
  {
    name: 'should enforce multiple egress policies with egress allow-all policy taking precedence',
    steps: [
      apply('x', { podSelector: {}, policyTypes: ['Egress'], egress: [{ ports: [{ port: 80 }] }] }),
      apply('x', { podSelector: {}, policyTypes: ['Egress'], egress: [{}] }, 'q'),
    ],
  },
  {
    name: 'should allow egress access to server in CIDR block',
    steps: [
      apply('x', {
        ...{ podSelector: pod('a'), policyTypes: ['Egress'] },
        egress: [{ to: [{ ipBlock: { cidr: '10.244.0.0/24' } }] }],
      }),
    ],
  },
  {
    name: 'should enforce except clause while egress access to server in CIDR block',
    steps: [
      apply('x', {
        ...{ podSelector: pod('a'), policyTypes: ['Egress'] },
        egress: [{ to: [{ ipBlock: { cidr: '10.244.0.0/16', except: ['10.244.0.0/24'] } }] }],
      }),
    ],
  },
  {
    name: 'should enforce policies to check ingress and egress policies can be controlled independently based on PodSelector',
    steps: [
      apply('x', { podSelector: pod('a'), ingress: [{ from: [{ podSelector: pod('b') }] }] }),
      apply('x', { podSelector: pod('a'), policyTypes: ['Egress'] }, 'q'),
    ],
  },
  {
    name: "should not mistakenly treat 'protocol: SCTP' as 'protocol: TCP', even if the plugin doesn't support SCTP",
    steps: [
      apply('x', { podSelector: pod('a'), ingress: [{ ports: [{ protocol: 'SCTP', port: 80 }] }] }),
      apply('x', { podSelector: pod('a'), ingress: [{ ports: [{ protocol: 'TCP', port: 80 }] }] }, 'q'),
    ],
  },
  {
    name: 'should enforce ingress policy allowing any port traffic to a server on a specific protocol',
    steps: [apply('x', { podSelector: pod('a'), ingress: [{ ports: [{ protocol: 'TCP' }] }] })],
  },
];
