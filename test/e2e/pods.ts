import type { Clients } from '../../src/client/resource-client.ts';
import { pods } from '../../src/client/resources.ts';
import type { Transport } from '../../src/client/transport.ts';
import type { IPFamily } from '../../src/objects/address.ts';
import type { ContainerPort, Pod } from '../../src/objects/types/core.generated.ts';

/** Of Pods where nothing runs Pods: Endpoints need the name of a Node, slices the Node. */
export const onlyNode = 'servicenet-e2e';

/** A condition that kubelet waits for, so that a test says when a Pod is ready. */
const readinessGate = 'servicenet.dev/e2e';

/** How a Pod of a test shall be. */
export interface PodWish {
  readonly labels: Readonly<Record<string, string>>;
  /** False: not ready before {@link TestPods.becomeReady}. Default true. */
  readonly ready?: boolean;
  readonly ports?: readonly ContainerPort[];
  /** True: it goes on for a minute after its deletion, or until it is deleted without grace. */
  readonly lingers?: boolean;
}

/**
 * Pods of tests. On a real cluster they are real: they meet the restricted Pod security standard, and their image has
 * no shell. Where nothing runs Pods, what kubelet would write is written here.
 */
export class TestPods {
  readonly #transport: Transport;
  readonly #clients: Clients;
  readonly #families: readonly IPFamily[];
  readonly #areRun: boolean;
  #count = 0;

  constructor(transport: Transport, clients: Clients, families: readonly IPFamily[], areRun: boolean) {
    this.#transport = transport;
    this.#clients = clients;
    this.#families = families;
    this.#areRun = areRun;
  }

  async create(namespace: string, name: string, wish: PodWish): Promise<void> {
    const { labels, ready = true, ports = [], lingers = false } = wish;
    const seconds = lingers ? 60 : 0;
    const container = {
      name: 'main',
      image: 'registry.k8s.io/pause:3.10',
      ports: [...ports],
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
      ...(lingers ? { lifecycle: { preStop: { sleep: { seconds } } } } : {}),
    };
    const spec = {
      containers: [container],
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      terminationGracePeriodSeconds: seconds,
      ...(ready ? {} : { readinessGates: [{ conditionType: readinessGate }] }),
      ...(this.#areRun ? {} : { nodeName: onlyNode }),
    };
    // For a cluster without a kubelet that runs hooks.
    const annotations: Record<string, string> = lingers ? { 'servicenet.dev/stop-after': `${seconds}s` } : {};
    const metadata = { namespace, name, labels: { ...labels }, annotations };
    const pod = await this.#clients.for(pods).create({ metadata, spec });
    if (!this.#areRun) await this.#run(pod, ready);
  }

  /** For Pods that were made not ready. */
  async becomeReady(namespace: string, name: string): Promise<void> {
    const condition = { type: this.#areRun ? readinessGate : 'Ready', status: 'True' };
    await this.#transport.request('PATCH', `/api/v1/namespaces/${namespace}/pods/${name}/status`, {
      contentType: 'application/strategic-merge-patch+json',
      body: { status: { conditions: [condition] } },
    });
  }

  async #run(pod: Pod, ready: boolean): Promise<void> {
    this.#count++;
    const [high, low] = [this.#count >> 8, this.#count & 255];
    const podIPs = this.#families.map((family) => ({
      ip: family === 'IPv4' ? `10.250.${high}.${low}` : `fd00:250::${this.#count.toString(16)}`,
    }));
    const [first] = podIPs;
    await this.#clients.for(pods).replaceStatus({
      ...pod,
      status: {
        ...pod.status,
        phase: 'Running',
        podIPs,
        ...(first === undefined ? {} : { podIP: first.ip }),
        conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }],
      },
    });
  }
}
