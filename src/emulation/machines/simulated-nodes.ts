import type { Host } from '../../host/host.ts';
import { Nft } from '../../node/nftables/nft.ts';
import { parseCidr } from '../../objects/address.ts';
import { field, match } from '../../node/nftables/elements.ts';
import { outsideAddresses, nodeLines, podRouteLines, portLines, wayIn } from '../lan.ts';
import { httpServer } from '../../host/http-server.ts';
import type { Informer } from '../../client/informers/informer.ts';
import { bgpPeers, leases, nodes as nodesResource, resourceName } from '../../client/resources.ts';
import { hostAddresses } from '../../controllers/kubelet/plan.ts';
import { isDown, isSimulated } from '../../controllers/nodes/plan.ts';
import { NodeAgent } from '../../node/forwarding/agent.ts';
import { announceSelectors } from '../../network/announcing/agent-report.ts';
import { defaultLeaseTimes } from '../../network/announcing/fence.ts';
import { AnnounceAgent } from '../../node/announce/agent.ts';
import { EgressAgent } from '../../node/egress/egress-agent.ts';
import { defaultMarkMask } from '../../node/nftables/marks.ts';
import { PolicyAgent } from '../../node/policy/policy-agent.ts';
import { UserspaceProxy } from '../../node/userspace-proxy.ts';
import type { NodeForwardingOptions } from '../../node/forwarding/view.ts';
import type { Node } from '../../objects/types/core.generated.ts';
import { jsonEqual } from '../../objects/json.ts';
import type { ObjectKey } from '../../objects/meta.ts';
import type { ControllerContext, Runnable } from '../../runtime/context.ts';
import { KeyLoop, ownKey } from '../../runtime/key-loop.ts';
import { ip, NamespaceHost, NetworkNamespace } from '../namespaces.ts';
import { HostPorts } from './host-ports.ts';
import { SecondLans } from './lan.ts';
import { errorMessage } from '../../objects/status.ts';

const table = { family: 'inet', name: 'masquerade' } as const;

/** Agents write at once what changes, and compare everything with the kernel each hour. */
const minSyncMs = 50;
const fullSyncMs = 3_600_000;

/**
 * Masquerades packets from Pods out of the cluster with the address of their node, as network plugins do: machines
 * outside have no route to Pods. It runs after `servicenet-egress`, which decides first.
 *
 * @param podCIDRs of the node.
 * @throws {NftError}
 */
async function masqueradePods(host: Host, podCIDRs: readonly string[]): Promise<void> {
  const inTable = { family: table.family, table: table.name };
  const chain = { ...inTable, name: 'postrouting', type: 'nat', hook: 'postrouting', prio: 110 };
  const rules = podCIDRs.flatMap((text) => {
    const cidr = parseCidr(text);
    if (cidr === undefined) return [];
    const family = cidr.family === 'IPv4' ? 'ip' : 'ip6';
    const [addr = '', len = ''] = cidr.canonical.split('/');
    const from = match(field.sourceAddress(family), { prefix: { addr, len: Number(len) } });
    return outsideAddresses([cidr.family]).map((address) => [
      from,
      match(field.destinationAddress(family), address),
      { masquerade: null },
    ]);
  });
  await new Nft(host).run([
    { add: { table } },
    { add: { chain } },
    ...rules.map((expr) => ({ add: { rule: { ...inTable, chain: chain.name, expr } } })),
  ]);
}

/** kube-proxy's default for `--metrics-bind-address`, where its status is (cmd/kube-proxy/app/server.go `serveMetrics`). */
const address = '127.0.0.1';
const port = 10249;

/** Serves `/proxyMode` and `/healthz` to programs of the node. Returns what ends it. @throws the system's error. */
async function serveProxyStatus(host: Host, mode: 'nftables' | 'userspace'): Promise<() => void> {
  const texts: Readonly<Record<string, string>> = { '/proxyMode': mode, '/healthz': 'ok', '/livez': 'ok' };
  const server = httpServer((request, response, { pathname }) => {
    request.resume();
    const text = Object.hasOwn(texts, pathname) ? texts[pathname] : undefined;
    response.writeHead(text === undefined ? 404 : 200, { 'Content-Type': 'text/plain; charset=utf-8' });
    response.end(text ?? '404 page not found\n');
  });
  await host.listen(server, address, port);
  return () => {
    server.close();
    server.closeAllConnections();
  };
}

export interface SimulatedNodesOptions {
  readonly forwarding: NodeForwardingOptions;
  /** Forward Services without nftables, which the machine lacks. */
  readonly isUserspace: boolean;
  /** Ranges of Pods and of Services: machines that are no nodes have no route to them. */
  readonly clusterRanges: readonly string[];
  /**
   * Starts the further servers of a machine: its kubelet. Returns a function that ends them.
   *
   * @throws the system's error.
   */
  serve(machine: Pick<NodeMachine, 'name' | 'host' | 'addresses'>): Promise<() => void>;
}

/** A node's machine: a network namespace on the LAN, with the agent that forwards Services. */
export interface NodeMachine {
  readonly name: string;
  readonly addresses: readonly string[];
  readonly podCIDRs: readonly string[];
  /** Its name is not the node's, which may be longer than a file's name, or that of another machine; see {@link machineName}. */
  readonly namespace: NetworkNamespace;
  readonly host: NamespaceHost;
  /** Undefined without nftables. */
  readonly hostPorts: HostPorts | undefined;
}

interface Running extends NodeMachine {
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
  // Without limit: by default Linux answers only some refusals a second.
  ['net/ipv4/icmp_ratelimit', '0'],
  ['net/ipv6/icmp/ratelimit', '0'],
  // kube-proxy's defaults, in seconds.
  ['net/netfilter/nf_conntrack_tcp_timeout_established', '86400'],
  ['net/netfilter/nf_conntrack_tcp_timeout_close_wait', '3600'],
  // Flows say when a connection began that is older than their viewer.
  ['net/netfilter/nf_conntrack_timestamp', '1'],
]);

/** Milliseconds that a Pod waits for the machine of its node: nodes are there a moment before their machines. */
const timeoutMs = 10_000;

/** kube-proxy's default. */
const healthz = { host: '', port: 10256 };
/** The default of `servicenet node`. */
const heartbeatPort = 10262;

/** Keeps a machine for every simulated Node that has addresses, with routes between all of them. */
export class SimulatedNodes implements Runnable {
  readonly #context: ControllerContext;
  readonly #loop: KeyLoop;
  /** LANs that networks of Pods name. */
  readonly lans = new SecondLans();
  readonly #options: SimulatedNodesOptions;
  readonly #nodes: Informer<Node>;
  readonly #machines = new Map<string, Running>();
  /** By node: why its machine could not be made. */
  readonly #failures = new Map<string, string>();
  /** Callers that wait for a machine. */
  readonly #waiting = new Set<() => void>();
  /** The number of machines so far. */
  #made = 0;
  #wayIn: string | undefined;

  constructor(context: ControllerContext, options: SimulatedNodesOptions) {
    this.#context = context;
    this.#options = options;
    this.#nodes = context.informers.informer(nodesResource);
    // One at a time: machines get routes to each other.
    const limits = { workers: 1, backoff: { base: 200, max: 10_000 } };
    this.#loop = new KeyLoop(context, 'emulated_nodes', limits, (loop) => {
      loop.on(loop.cache(nodesResource), ownKey);
      return (key) => this.#reconcile(key);
    });
  }

  /** The machine of a node; undefined where there is none (yet). */
  get(name: string): NodeMachine | undefined {
    return this.#machines.get(name);
  }

  /** The machine of a node, once it is there. @throws {Error} where it cannot be made, or not within {@link timeoutMs}. */
  async ready(name: string): Promise<NodeMachine> {
    const late = AbortSignal.timeout(timeoutMs);
    for (;;) {
      const machine = this.#machines.get(name);
      if (machine !== undefined) return machine;
      const failure = this.#failures.get(name);
      if (failure !== undefined) throw new Error(`the network of the node is not ready: ${failure}`);
      if (late.aborted) throw new Error('the network of the node is not ready');
      await new Promise<void>((resolve) => {
        this.#waiting.add(resolve);
        late.addEventListener('abort', () => resolve(), { once: true });
      });
    }
  }

  /** All that there are now. */
  machines(): Iterable<NodeMachine> {
    return this.#machines.values();
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

  run(signal: AbortSignal): Promise<void> {
    return this.#loop.run(signal);
  }

  async #reconcile(name: ObjectKey): Promise<undefined> {
    const node = this.#nodes.cache.get(name);
    const machine = this.#machines.get(name);
    const addresses = node === undefined ? [] : hostAddresses(node);
    const podCIDRs = node?.spec.podCIDRs ?? [];
    const isWanted = node !== undefined && isSimulated(node) && addresses.length > 0 && podCIDRs.length > 0;
    const isSame = jsonEqual([machine?.addresses, machine?.podCIDRs], [addresses, podCIDRs]);
    if (machine !== undefined && (!isWanted || !isSame)) await this.#remove(machine);
    this.#failures.delete(name);
    if (!isWanted) return;
    try {
      const present = this.#machines.get(name) ?? (await this.#add(name, addresses, podCIDRs));
      await this.#setDown(present, isDown(node));
    } catch (error) {
      this.#failures.set(name, errorMessage(error));
      throw error;
    } finally {
      for (const wake of this.#waiting) wake();
      this.#waiting.clear();
    }
  }

  async #add(name: string, addresses: readonly string[], podCIDRs: readonly string[]): Promise<Running> {
    const made = machineName(++this.#made);
    const others = [...this.#machines.values()];
    const toItsPods = podRouteLines(podCIDRs, addresses);
    const toOthers = others.flatMap((other) => podRouteLines(other.podCIDRs, other.addresses));
    let namespace: NetworkNamespace | undefined;
    try {
      await ip([`netns add ${made}`, ...portLines(made, made, addresses)]);
      namespace = new NetworkNamespace(made);
      await ip([...nodeLines(addresses, podCIDRs), ...toOthers], made);
      for (const [parameter, value] of nodeSysctls) {
        if (namespace.hasSysctl(parameter)) namespace.writeSysctl(parameter, value);
      }
      await Promise.all([ip(toItsPods), ...others.map((other) => ip(toItsPods, other.namespace.name))]);
    } catch (error) {
      namespace?.close();
      // Removes only what this attempt made; the error is that of the first failure.
      await ip([`netns delete ${made}`]).catch(() => undefined);
      throw error;
    }
    const host = new NamespaceHost(namespace);
    if (!this.#options.isUserspace) await masqueradePods(host, podCIDRs);
    const endServing = await this.#options.serve({ name, host, addresses });
    const endStatus = await serveProxyStatus(host, this.#options.isUserspace ? 'userspace' : 'nftables');
    const stopAgent = this.#startAgent(name, host);
    const machine: Running = {
      ...{ name, addresses, podCIDRs, namespace, host, isDown: false },
      hostPorts: this.#options.isUserspace ? undefined : new HostPorts(host),
      stop: async () => {
        endServing();
        endStatus();
        await stopAgent();
      },
    };
    this.#machines.set(name, machine);
    await this.#chooseWayIn();
    return machine;
  }

  async #remove(machine: Running): Promise<void> {
    this.#machines.delete(machine.name);
    await machine.stop();
    machine.namespace.close();
    this.lans.forget(machine.namespace);
    const { name: made } = machine.namespace;
    await ip([`link delete ${made}`, `netns delete ${made}`]);
    await this.#chooseWayIn();
  }

  /** A failed node is cut off from the LANs. */
  async #setDown(machine: Running, down: boolean): Promise<void> {
    if (machine.isDown === down) return;
    await ip([`link set ${machine.namespace.name} ${down ? 'down' : 'up'}`]);
    await this.lans.setDown(machine.namespace, down);
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

  async #announce(nodeName: string, host: NamespaceHost, signal: AbortSignal): Promise<void> {
    const { clients, log } = this.#context;
    const agent = new AnnounceAgent({
      ...{ context: this.#context, host, nodeName, leaseNamespace, leases: clients.for(leases) },
      bgpPeers: clients.for(bgpPeers),
      // The agent withdraws its routes: routers must not keep those of a deleted machine.
      forwardingOutlives: false,
      // A deleted machine is not started again.
      ...{ onAPILoss: 'hold', restartGraceSeconds: 0, lease: defaultLeaseTimes, heartbeatPort, egress: true },
    });
    try {
      await agent.run(signal);
    } catch (error) {
      log.error({ err: error, node: nodeName }, 'this node announces nothing: its agent has ended');
    }
  }

  async #filter(nodeName: string, host: NamespaceHost, signal: AbortSignal): Promise<void> {
    try {
      await new PolicyAgent({
        ...{ context: this.#context, host, nodeName, routesPods: true, fullSyncMs, recordsDrops: true },
      }).run(signal);
    } catch (error) {
      this.#context.log.error(
        { err: error, node: nodeName },
        'no policies on this node: its agent has ended',
      );
    }
  }

  async #translate(nodeName: string, host: NamespaceHost, signal: AbortSignal): Promise<void> {
    const options = { context: this.#context, host, nodeName, clusterCIDRs: [], markMask: defaultMarkMask };
    try {
      await new EgressAgent(options).run(signal);
    } catch (error) {
      this.#context.log.error(
        { err: error, node: nodeName },
        'no EgressIPs on this node: its agent has ended',
      );
    }
  }

  #startAgent(nodeName: string, host: NamespaceHost): () => Promise<void> {
    const { forwarding, isUserspace } = this.#options;
    const { clock, random, log } = this.#context;
    const agent = new NodeAgent({
      ...{ context: this.#context, host, nodeName, forwarding, healthz },
      ...{ minSyncMs, fullSyncMs, markMask: defaultMarkMask, recordsDrops: true },
      ...(isUserspace ? { dataPath: new UserspaceProxy({ host, clock, random, log }) } : {}),
    });
    const stopping = new AbortController();
    const forwarded = agent.run(stopping.signal).catch((error: unknown) => {
      log.error({ err: error, node: nodeName }, 'no Services on this node: its agent has ended');
    });
    // The userspace proxy has all addresses of Services on all nodes.
    const announced = isUserspace ? Promise.resolve() : this.#announce(nodeName, host, stopping.signal);
    // Policies and egress addresses need the kernel.
    const filtered = isUserspace ? Promise.resolve() : this.#filter(nodeName, host, stopping.signal);
    const translated = isUserspace ? Promise.resolve() : this.#translate(nodeName, host, stopping.signal);
    return async () => {
      stopping.abort();
      await Promise.all([forwarded, announced, filtered, translated]);
    };
  }
}

/** The namespace of announcing agents' Leases in `up`: there is none of servicenet. */
const leaseNamespace = 'kube-node-lease';

/** The objects that agents of simulated nodes read, besides those of the proxy. */
export const announceCaches = {
  labelSelectors: announceSelectors,
  namespaces: { [resourceName(leases)]: leaseNamespace },
} as const;

/** Of a node's network namespace and of its port of the switch: at most 15 bytes, of no other machine (`outside`) or Pod. */
function machineName(number: number): string {
  return `node${number}`;
}
