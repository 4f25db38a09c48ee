import { SandboxError, type WantedSandbox } from '../../controllers/kubelet/container-runtime.ts';
import { sysctlsOf } from '../../controllers/kubelet/sysctls.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import { lastingPorts } from '../../objects/pods.ts';
import { ip, NamespaceHost, NetworkNamespace } from '../namespaces.ts';
import { namespaceFolder } from '../namespace-folder.ts';
import { nodeSideLines, podLines, podLinkLines } from '../lan.ts';
import type { HostPort } from './host-ports.ts';
import type { NodeMachine, SimulatedNodes } from './simulated-nodes.ts';
import type { PodInterfaces } from './pod-interfaces.ts';
import { errorMessage } from '../../objects/status.ts';

/** The network of a Pod. */
export interface PodNetwork {
  readonly node: NodeMachine;
  readonly host: NamespaceHost;
  /** The addresses on which servers listen: all, or the node's with `hostNetwork`. */
  readonly listenAt: readonly string[];
  readonly addresses: readonly string[];
  /** The file of its network namespace. */
  readonly path: string;
}

interface Sandbox extends PodNetwork {
  /** Undefined for a Pod with `hostNetwork`. */
  readonly own: { readonly namespace: NetworkNamespace; readonly link: string } | undefined;
  /** Its further interfaces are made. */
  isAttached: boolean;
}

/** Pods as network namespaces with a link to their node. */
export class NamespaceSandboxes {
  readonly #nodes: SimulatedNodes;
  readonly #interfaces: PodInterfaces;
  /** By uid. */
  readonly #sandboxes = new Map<string, Sandbox>();
  /** The last call for each uid: one follows the other. */
  readonly #turns = new Map<string, Promise<void>>();
  /** Of links: their names are short. */
  #links = 0;

  constructor(nodes: SimulatedNodes, interfaces: PodInterfaces) {
    this.#nodes = nodes;
    this.#interfaces = interfaces;
  }

  /** The name of the network namespace that a Pod is in; undefined where it has none (yet). */
  namespaceOf(pod: Pod): string | undefined {
    const sandbox = this.#sandboxes.get(uidOf(pod));
    if (sandbox === undefined) return undefined;
    return (sandbox.own?.namespace ?? sandbox.node.namespace).name;
  }

  /** The network of a Pod; undefined where it has none (yet). */
  get(pod: Pod): PodNetwork | undefined {
    return this.#sandboxes.get(uidOf(pod));
  }

  /** Makes the sandbox of a Pod where there is none. @throws {SandboxError} */
  ensure(wanted: WantedSandbox): Promise<void> {
    return this.#inTurn(wanted.pod, () => this.#ensure(wanted));
  }

  /**
   * Makes the further interfaces of a Pod whose `network-status` names them, once.
   *
   * @returns what is not made, and why: for Events of the Pod.
   * @throws {SandboxError}
   */
  async attach(pod: Pod): Promise<readonly string[]> {
    let missing: readonly string[] = [];
    await this.#inTurn(pod, async () => {
      const sandbox = this.#sandboxes.get(uidOf(pod));
      if (sandbox?.own === undefined || sandbox.isAttached) return;
      const { node, host, own } = sandbox;
      missing = await this.#interfaces.attach(pod, { node, host, ...own });
      sandbox.isAttached = true;
    });
    return missing;
  }

  /** Removes a sandbox without running containers. */
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
    const uid = uidOf(wanted.pod);
    if (this.#sandboxes.has(uid)) return;
    try {
      this.#sandboxes.set(uid, await this.#make(wanted));
    } catch (error) {
      throw new SandboxError(errorMessage(error), { cause: error });
    }
  }

  async #make({ pod, node: { metadata }, addresses }: WantedSandbox): Promise<Sandbox> {
    const node = await this.#nodes.ready(metadata.name ?? '');
    const name = pod.spec.hostNetwork === true ? node.namespace.name : namespaceName(pod);
    const hasIPv6 = addresses.some((address) => address.includes(':'));
    const before = { node, addresses, path: `${namespaceFolder}/${name}`, isAttached: false };
    if (pod.spec.hostNetwork === true) {
      // Not on all addresses: those of Services are there, too.
      const loopbacks = [...(hasIPv6 ? ['::1'] : []), '127.0.0.1'];
      return { ...before, own: undefined, host: node.host, listenAt: [...addresses, ...loopbacks] };
    }
    const link = `pod${++this.#links}`;
    let namespace: NetworkNamespace | undefined;
    try {
      await ip(podLinkLines(name, node.namespace.name, link));
      await Promise.all([
        ip(podLines(addresses), name),
        ip(nodeSideLines(link, addresses, node.addresses), node.namespace.name),
      ]);
      namespace = new NetworkNamespace(name);
      setSysctls(namespace, sysctlsOf(pod, 'net'));
      const own = { namespace, link };
      const listenAt = hasIPv6 ? ['0.0.0.0', '::'] : ['0.0.0.0'];
      await node.hostPorts?.set(uidOf(pod), hostPorts(pod, addresses));
      return { ...before, own, host: new NamespaceHost(namespace), listenAt };
    } catch (error) {
      // The next attempt would find what this one made; the error is that of the first failure.
      namespace?.close();
      await ip([`netns delete ${name}`]).catch(() => undefined);
      throw error;
    }
  }

  async #remove(pod: Pod): Promise<void> {
    const uid = uidOf(pod);
    const sandbox = this.#sandboxes.get(uid);
    if (sandbox === undefined) return;
    this.#sandboxes.delete(uid);
    const { own, node } = sandbox;
    if (own === undefined) return;
    own.namespace.close();
    // The machine of a deleted Node has taken its links with it.
    if (this.#nodes.get(node.name) === node) {
      await node.hostPorts?.set(uid, []);
      await ip([`link delete ${own.link}`], node.namespace.name);
    }
    await ip([`netns delete ${own.namespace.name}`]);
  }
}

/** @throws {Error} for one that the kernel refuses. */
function setSysctls(namespace: NetworkNamespace, sysctls: ReadonlyMap<string, string>): void {
  for (const [path, value] of sysctls) {
    try {
      namespace.writeSysctl(path, value);
    } catch (error) {
      throw new Error(`write sysctl ${path}: ${errorMessage(error)}`, { cause: error });
    }
  }
}

function uidOf({ metadata }: Pod): string {
  return metadata.uid ?? '';
}

function namespaceName(pod: Pod): string {
  return `pod-${uidOf(pod)}`;
}

function hostPorts({ spec }: Pod, addresses: readonly string[]): readonly HostPort[] {
  return lastingPorts(spec).flatMap(({ hostPort = 0, hostIP = '', containerPort, protocol = 'TCP' }) => {
    if (hostPort === 0 || (protocol !== 'TCP' && protocol !== 'UDP')) return [];
    const isAny = hostIP === '' || hostIP === '0.0.0.0' || hostIP === '::';
    return addresses
      .filter((podIP) => isAny || podIP.includes(':') === hostIP.includes(':'))
      .map((podIP) => ({ protocol, hostPort, hostIP: isAny ? undefined : hostIP, podIP, containerPort }));
  });
}
