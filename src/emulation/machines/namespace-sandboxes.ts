import type { PodSandboxes, WantedSandbox } from '../../controllers/kubelet/pod-sandboxes.ts';
import { SandboxError } from '../../controllers/kubelet/pod-sandboxes.ts';
import type { Pod } from '../../objects/core.generated.ts';
import { ip } from '../ip.ts';
import { nodeSideLines, podLines, podLinkLines } from '../lan.ts';
import { NamespaceHost } from '../namespaces/namespace-host.ts';
import { NetworkNamespace } from '../namespaces/network-namespace.ts';
import { type DeclaredPort, PodServer } from '../programs/pod-server.ts';
import type { HostPort } from './host-ports.ts';
import type { NodeMachine, SimulatedNodes } from './simulated-nodes.ts';

interface Sandbox {
  readonly node: NodeMachine;
  /** Undefined for a Pod with `hostNetwork`. */
  readonly own: { readonly namespace: NetworkNamespace; readonly link: string } | undefined;
  readonly host: NamespaceHost;
  readonly listenAt: readonly string[];
  program: PodServer | undefined;
  ready: boolean;
}

/** Pods as network namespaces with a link to their node, and a {@link PodServer} in each. */
export class NamespaceSandboxes implements PodSandboxes {
  readonly #nodes: SimulatedNodes;
  /** By uid. */
  readonly #sandboxes = new Map<string, Sandbox>();
  /** The last call for each uid: one follows the other. */
  readonly #turns = new Map<string, Promise<void>>();
  /** Of links: their names are short. */
  #links = 0;

  constructor(nodes: SimulatedNodes) {
    this.#nodes = nodes;
  }

  /** The name of the network namespace that a Pod is in; undefined where it has none (yet). */
  namespaceOf(pod: Pod): string | undefined {
    const sandbox = this.#sandboxes.get(uidOf(pod));
    if (sandbox === undefined) return undefined;
    return sandbox.own === undefined ? sandbox.node.name : namespaceName(pod);
  }

  ensure(wanted: WantedSandbox): Promise<void> {
    return this.#inTurn(wanted.pod, () => this.#ensure(wanted));
  }

  remove(pod: Pod): Promise<void> {
    return this.#inTurn(pod, () => this.#remove(pod));
  }

  async #inTurn(pod: Pod, work: () => Promise<void>): Promise<void> {
    const uid = uidOf(pod);
    const turn = (this.#turns.get(uid) ?? Promise.resolve()).then(work, work);
    this.#turns.set(uid, turn);
    try {
      await turn;
    } finally {
      if (this.#turns.get(uid) === turn) this.#turns.delete(uid);
    }
  }

  async #ensure(wanted: WantedSandbox): Promise<void> {
    const { pod, running, ready } = wanted;
    const uid = uidOf(pod);
    let sandbox = this.#sandboxes.get(uid);
    try {
      if (sandbox === undefined) {
        sandbox = await this.#make(wanted);
        this.#sandboxes.set(uid, sandbox);
      }
      sandbox.ready = ready;
      if (running && sandbox.program === undefined) await startProgram(sandbox, pod);
    } catch (error) {
      throw new SandboxError(error instanceof Error ? error.message : String(error), { cause: error });
    }
    if (!running) {
      sandbox.program?.close();
      sandbox.program = undefined;
    }
  }

  async #make({ pod, node: { metadata }, addresses }: WantedSandbox): Promise<Sandbox> {
    const node = this.#nodes.get(metadata.name ?? '');
    if (node === undefined) throw new Error('the network of the node is not ready');
    const before = { node, program: undefined, ready: false };
    if (pod.spec.hostNetwork === true) {
      return { ...before, own: undefined, host: node.host, listenAt: addresses };
    }
    const name = namespaceName(pod);
    const link = `pod${++this.#links}`;
    try {
      await ip(podLinkLines(name, node.name, link));
      await Promise.all([
        ip(podLines(addresses), name),
        ip(nodeSideLines(link, addresses, node.addresses), node.name),
      ]);
      const namespace = new NetworkNamespace(name);
      const own = { namespace, link };
      const listenAt = addresses.some((address) => address.includes(':')) ? ['0.0.0.0', '::'] : ['0.0.0.0'];
      await node.hostPorts?.set(uidOf(pod), hostPorts(pod, addresses));
      return { ...before, own, host: new NamespaceHost(namespace), listenAt };
    } catch (error) {
      // What was made so far would be in the way of the next attempt; the reason is that of the first failure.
      await ip([`netns delete ${name}`]).catch(() => undefined);
      throw error;
    }
  }

  async #remove(pod: Pod): Promise<void> {
    const uid = uidOf(pod);
    const sandbox = this.#sandboxes.get(uid);
    if (sandbox === undefined) return;
    this.#sandboxes.delete(uid);
    const { program, own, node } = sandbox;
    program?.close();
    if (own === undefined) return;
    own.namespace.close();
    // The machine of a deleted Node has taken its links with it.
    if (this.#nodes.get(node.name) === node) {
      await node.hostPorts?.set(uid, []);
      await ip([`link delete ${own.link}`], node.name);
    }
    await ip([`netns delete ${namespaceName(pod)}`]);
  }
}

async function startProgram(sandbox: Sandbox, pod: Pod): Promise<void> {
  const { host, listenAt, node } = sandbox;
  const { name = '', namespace = '' } = pod.metadata;
  const identity = { pod: name, namespace, node: node.name, isReady: () => sandbox.ready };
  sandbox.program = await PodServer.listen({
    host,
    identity,
    addresses: listenAt,
    ports: declaredPorts(pod),
  });
}

function uidOf({ metadata }: Pod): string {
  return metadata.uid ?? '';
}

function namespaceName(pod: Pod): string {
  return `pod-${uidOf(pod)}`;
}

/** Each once, though two containers may declare it. */
function declaredPorts({ spec }: Pod): readonly DeclaredPort[] {
  const ports = new Map<string, DeclaredPort>();
  for (const { containerPort: port, protocol = 'TCP' } of allPorts(spec)) {
    if (protocol === 'TCP' || protocol === 'UDP') ports.set(`${protocol} ${port}`, { protocol, port });
  }
  return [...ports.values()];
}

function hostPorts({ spec }: Pod, addresses: readonly string[]): readonly HostPort[] {
  return allPorts(spec).flatMap(({ hostPort = 0, hostIP = '', containerPort, protocol = 'TCP' }) => {
    if (hostPort === 0 || (protocol !== 'TCP' && protocol !== 'UDP')) return [];
    const any = hostIP === '' || hostIP === '0.0.0.0' || hostIP === '::';
    return addresses
      .filter((podIP) => any || podIP.includes(':') === hostIP.includes(':'))
      .map((podIP) => ({ protocol, hostPort, hostIP: any ? undefined : hostIP, podIP, containerPort }));
  });
}

/** Of containers that run as long as the Pod: sidecars are init containers. */
function allPorts({ containers = [], initContainers = [] }: Pod['spec']) {
  const sidecars = initContainers.filter(({ restartPolicy }) => restartPolicy === 'Always');
  return [...containers, ...sidecars].flatMap(({ ports = [] }) => ports);
}
