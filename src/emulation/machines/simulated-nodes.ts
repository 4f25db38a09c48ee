import type { Informer } from '../../client/informer.ts';
import { nodes as nodesResource } from '../../client/resources.ts';
import { hostAddresses } from '../../controllers/kubelet/plan.ts';
import { isDown, isSimulated } from '../../controllers/nodes/plan.ts';
import { NodeAgent } from '../../node/agent.ts';
import { UserspaceProxy } from '../../node/userspace/userspace-proxy.ts';
import type { NodeForwardingOptions } from '../../node/forwarding-view.ts';
import type { Node } from '../../objects/core.generated.ts';
import { jsonEqual } from '../../objects/json.ts';
import { keyOf, type ObjectKey } from '../../objects/key.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import { Reconciler } from '../../runtime/reconciler.ts';
import { ip } from '../ip.ts';
import { nodeLines, podRouteLines, portLines, wayIn } from '../lan.ts';
import { HostPorts } from './host-ports.ts';
import { NamespaceHost } from '../namespaces/namespace-host.ts';
import { NetworkNamespace } from '../namespaces/network-namespace.ts';

export interface SimulatedNodesOptions {
  readonly forwarding: NodeForwardingOptions;
  /** Forward Services without nftables, which the machine lacks. */
  readonly isUserspace: boolean;
  /** Ranges of Pods and of Services: machines that are no nodes have no route to them. */
  readonly clusterRanges: readonly string[];
}

/** A node's machine: a network namespace on the LAN, with the agent that forwards Services. */
export interface NodeMachine {
  readonly name: string;
  readonly addresses: readonly string[];
  readonly podCIDRs: readonly string[];
  readonly host: NamespaceHost;
  /** Undefined without nftables. */
  readonly hostPorts: HostPorts | undefined;
}

interface Running extends NodeMachine {
  readonly namespace: NetworkNamespace;
  /** Its port of the LAN's switch. */
  readonly port: string;
  isDown: boolean;
  /** Ends the agent. */
  stop(): Promise<void>;
}

/** Parameters of a node's kernel. */
const nodeSysctls: ReadonlyMap<string, string> = new Map([
  ['net/ipv4/ip_forward', '1'],
  ['net/ipv6/conf/all/forwarding', '1'],
  // A Pod that reaches itself by a Service goes out of its link and in again.
  ['net/ipv4/conf/all/send_redirects', '0'],
  ['net/ipv4/conf/default/send_redirects', '0'],
  // Every refusal is answered: by default only so many a second are.
  ['net/ipv4/icmp_ratelimit', '0'],
  ['net/ipv6/icmp/ratelimit', '0'],
]);

/** Keeps a machine for every simulated Node that has addresses, with routes between all of them. */
export class SimulatedNodes extends Reconciler {
  readonly #options: SimulatedNodesOptions;
  readonly #nodes: Informer<Node>;
  readonly #machines = new Map<string, Running>();
  /** Who waits for a machine to be there. */
  readonly #waiting = new Set<() => void>();
  /** Of ports of the switch: names of links are short. */
  #ports = 0;
  #wayIn: string | undefined;

  constructor(context: ControllerContext, options: SimulatedNodesOptions) {
    // One at a time: machines get routes to each other.
    super(context, 'emulated_nodes', { workers: 1, backoff: { base: 200, max: 10_000 } });
    this.#options = options;
    this.#nodes = this.informer(nodesResource);
    const touch = (node: Node): void => this.queue.enqueue(keyOf(node));
    this.#nodes.addHandler({ added: touch, updated: touch, deleted: touch });
  }

  /** The machine of a node; undefined where there is none (yet). */
  get(name: string): NodeMachine | undefined {
    return this.#machines.get(name);
  }

  /** Resolves when every Node of the API has its machine, and there are at least so many of them. */
  async complete(atLeast: number): Promise<void> {
    const isComplete = (): boolean => {
      const wanted = [...this.#nodes.cache.values()].filter(isSimulated);
      return (
        wanted.length >= atLeast && wanted.every(({ metadata }) => this.#machines.has(metadata.name ?? ''))
      );
    };
    while (!isComplete()) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  protected override async reconcile(name: ObjectKey): Promise<undefined> {
    const node = this.#nodes.cache.get(name);
    const machine = this.#machines.get(name);
    const addresses = node === undefined ? [] : hostAddresses(node);
    const podCIDRs = node?.spec.podCIDRs ?? [];
    const isWanted = node !== undefined && isSimulated(node) && addresses.length > 0 && podCIDRs.length > 0;
    const isSame = jsonEqual([machine?.addresses, machine?.podCIDRs], [addresses, podCIDRs]);
    if (machine !== undefined && (!isWanted || !isSame)) await this.#remove(machine);
    if (!isWanted) return;
    const present = this.#machines.get(name) ?? (await this.#add(name, addresses, podCIDRs));
    await this.#setDown(present, isDown(node));
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  async #add(name: string, addresses: readonly string[], podCIDRs: readonly string[]): Promise<Running> {
    const port = `node${++this.#ports}`;
    const others = [...this.#machines.values()];
    const toItsPods = podRouteLines(podCIDRs, addresses);
    const toOthers = others.flatMap((other) => podRouteLines(other.podCIDRs, other.addresses));
    let namespace: NetworkNamespace;
    try {
      await ip([`netns add ${name}`, ...portLines(name, port)]);
      await ip([...nodeLines(addresses), ...toOthers], name);
      namespace = new NetworkNamespace(name);
    } catch (error) {
      // What was made so far would be in the way of the next attempt; the reason is that of the first failure.
      await ip([`netns delete ${name}`]).catch(() => undefined);
      throw error;
    }
    for (const [parameter, value] of nodeSysctls) {
      if (namespace.hasSysctl(parameter)) namespace.writeSysctl(parameter, value);
    }
    await Promise.all([ip(toItsPods), ...others.map((other) => ip(toItsPods, other.name))]);
    const host = new NamespaceHost(namespace);
    const machine: Running = {
      ...{ name, addresses, podCIDRs, namespace, host, port, isDown: false },
      hostPorts: this.#options.isUserspace ? undefined : new HostPorts(host),
      stop: this.#startAgent(name, host),
    };
    this.#machines.set(name, machine);
    await this.#chooseWayIn();
    return machine;
  }

  async #remove(machine: Running): Promise<void> {
    this.#machines.delete(machine.name);
    await machine.stop();
    machine.namespace.close();
    await ip([`link delete ${machine.port}`, `netns delete ${machine.name}`]);
    await this.#chooseWayIn();
  }

  /** A failed node is cut off from the LAN. */
  async #setDown(machine: Running, down: boolean): Promise<void> {
    if (machine.isDown === down) return;
    await ip([`link set ${machine.port} ${down ? 'down' : 'up'}`]);
    machine.isDown = down;
    await this.#chooseWayIn();
  }

  /** The LAN reaches Services by the first node that is up. */
  async #chooseWayIn(): Promise<void> {
    const first = [...this.#machines.values()].find((machine) => !machine.isDown);
    if (first === undefined || first.name === this.#wayIn) return;
    this.#wayIn = first.name;
    await ip(wayIn(first.addresses, []));
    await ip(wayIn(first.addresses, this.#options.clusterRanges), 'outside');
  }

  #startAgent(nodeName: string, host: NamespaceHost): () => Promise<void> {
    const { forwarding, isUserspace } = this.#options;
    const { clock, random, log } = this.context;
    const agent = new NodeAgent({
      ...{ context: this.context, host, nodeName, forwarding },
      ...(isUserspace ? { dataPath: new UserspaceProxy({ host, clock, random, log }) } : {}),
    });
    const stopping = new AbortController();
    const ended = agent.run(stopping.signal).catch((error: unknown) => {
      log.error({ err: error, node: nodeName }, 'no Services on this node: its agent has ended');
    });
    return async () => {
      stopping.abort();
      await ended;
    };
  }
}
