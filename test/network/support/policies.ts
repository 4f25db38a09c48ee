import { spawnSync } from 'node:child_process';
import { expect } from 'vitest';
import { listAt, textAt } from '../../../src/objects/json.ts';
import type { NetworkPolicy, NetworkPolicySpec } from '../../../src/objects/types/networking.generated.ts';
import { bruteForce, type BrutePod } from '../../unit/network/policy/brute-force.ts';
import { PodNetwork } from './pod-network.ts';
import type { PolicyScenario } from './policy-scenarios.ts';

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

/** By which a connection is tried. */
export type Protocol = keyof typeof tries;

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

/** The Pods of some gates' tests, by their namespaces. */
export const fourPods = { x: ['a', 'b'], y: ['a', 'b'] } as const;
/** Those of all of upstream's tests, which make as many of them as each needs. */
export const eightPods = { x: ['a', 'b', 'c'], y: ['a', 'b', 'c'], z: ['a', 'b'] } as const;

/** Pods that listen on 80 and 81 by TCP and UDP. The port that is called `http` has another number in every other one. */
export class PolicyCluster {
  readonly network: PodNetwork;
  readonly namespaces: Record<string, Record<string, string>> = {};
  #pods: readonly BrutePod[] = [];
  /** By namespace and name. */
  readonly #policies = new Map<string, NetworkPolicy>();

  private constructor(network: PodNetwork) {
    this.network = network;
  }

  /** @param model names of Pods by their namespace; neighbours are on different nodes. */
  static async start(model: Readonly<Record<string, readonly string[]>>): Promise<PolicyCluster> {
    const cluster = new PolicyCluster(await PodNetwork.start({ nodes: 2, platform: 'openshift' }));
    for (const [n, [name, pods]] of Object.entries(model).entries()) {
      const inside = await cluster.network.inNamespace(name);
      for (const [i, pod] of pods.entries()) {
        const odd = i % 2;
        const ports = [
          { name: 'http', containerPort: 80 + odd },
          { name: 'other', containerPort: 81 - odd },
          { name: 'datagrams', containerPort: 80 + odd, protocol: 'UDP' },
          { name: 'others', containerPort: 81 - odd, protocol: 'UDP' },
        ];
        await inside.pod(pod, pod, { ports }, { spec: { nodeName: `node-${1 + ((i + n) % 2)}` } });
        await inside.running(pod, 1);
      }
      await cluster.labelNamespace(name, {});
    }
    cluster.#pods = await cluster.#readPods();
    return cluster;
  }

  /** Lets all Pods listen by SCTP too, until the cluster ends. */
  serveSctp(): void {
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

  /** Does the steps of a test of Kubernetes, and looks after each who reaches whom. */
  async play({ steps, protocols = ['TCP'] }: PolicyScenario): Promise<void> {
    for (const step of steps) {
      await step(this);
      for (const protocol of protocols) await this.expectReachability(protocol);
    }
  }

  /** Waits until every Pod reaches whom the policies let it reach by their words, and no other. */
  async expectReachability(protocol: Protocol = 'TCP'): Promise<void> {
    this.#pods = await this.#readPods();
    const expected = this.#allowed(protocol);
    await expect
      .poll(() => this.#reached(protocol, expected), { timeout: 60_000, interval: 100 })
      .toEqual([...expected].sort());
  }

  async #readPods(): Promise<readonly BrutePod[]> {
    const pods: BrutePod[] = [];
    for (const namespace of Object.keys(this.namespaces)) {
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
