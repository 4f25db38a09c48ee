import { AnnouncingAgent } from '../../src/network/announcing/agent.ts';
import type {
  AddressToAnnounce,
  AgentAction,
  AgentEvent,
  AnnouncingView,
  Layer2Plan,
} from '../../src/network/announcing/agent-io.ts';
import { defaultLeaseTimes, type LeaseTimes } from '../../src/network/announcing/fence.ts';
import type { AnnouncerLease } from '../../src/network/announcing/agent-report.ts';
import { readAnnounce } from '../../src/network/announcing/announcement-plan.ts';
import type { ServiceAddress } from '../../src/network/announcing/assigned-addresses.ts';
import { parseCidr } from '../../src/objects/address.ts';
import type { Node } from '../../src/objects/types/core.generated.ts';

/** What goes wrong with a node, from when on, for how many milliseconds. */
export interface Fault {
  readonly node: string;
  /**
   * `api`: no request arrives, and no answer; `watch`: no change is seen; `heartbeats`: no datagram arrives; `pause`: the
   * process stands still, its kernel does not; `dead`: there is no process.
   */
  readonly of: 'api' | 'watch' | 'heartbeats' | 'pause' | 'dead';
  readonly fromMs: number;
  readonly lastsMs: number;
}

export interface AgentNetworkOptions {
  readonly nodes: readonly string[];
  readonly addresses: readonly ServiceAddress[];
  readonly faults?: readonly Fault[];
  /** Milliseconds that requests, answers, changes of objects, and datagrams take, in turn. */
  readonly delaysMs?: readonly number[];
  readonly onAPILoss?: 'hold' | 'withdraw';
  readonly restartGraceSeconds?: number;
  readonly lease?: Partial<LeaseTimes>;
  /** Where datagrams come from that consent; default: the node. */
  readonly consentsFrom?: string;
}

/** Milliseconds after which a request without an answer has failed. */
const requestTimeoutMs = 1000;

/** Milliseconds that a kernel is late in ending lifetimes: the longest that was measured. */
const kernelLateMs = 280;

/** Milliseconds that a kernel takes for a batch of changes, and the network for probes of new addresses. */
const batchMs = 10;
const probeMs = 200;

/** An address that each node can have, as a Service gives it. */
export function assigned(address: string, other: Partial<ServiceAddress> = {}): ServiceAddress {
  const { announcement } = readAnnounce(undefined);
  return { address, announcement, services: [], pool: undefined, localNodes: undefined, ...other };
}

/** What was seen of an address, in milliseconds. */
export interface Seen {
  /** In which two nodes had it, at most in a row. */
  shared: number;
  /** Since the last renewal of a node that had it when another one got it, at most: the last that either has seen. */
  stalest: number;
  /** In which no node had it after the first one did, at most in a row. */
  away: number;
}

interface Stored extends AnnouncerLease {
  readonly sentAtMs: number;
}

/** Agents with an API server, datagrams and kernels, in a time of their own. */
export class AgentNetwork {
  nowMs = 0;
  readonly options: AgentNetworkOptions;
  readonly machines: ReadonlyMap<string, Machine>;
  /** By node. */
  readonly stored = new Map<string, Stored>();
  readonly seen: ReadonlyMap<string, Seen>;
  readonly #faults: readonly Fault[];
  readonly #delaysMs: readonly number[];
  /** In the order in which it happens. */
  readonly #due: { readonly atMs: number; readonly run: () => void }[] = [];
  readonly #sharedSince = new Map<string, number>();
  readonly #awaySince = new Map<string, number>();
  readonly #before = new Map<string, readonly Machine[]>();
  #addresses: readonly ServiceAddress[];
  #drawn = 0;
  /** Of the last write. */
  version = 0;

  constructor(options: AgentNetworkOptions) {
    this.options = options;
    this.#addresses = options.addresses;
    this.#faults = options.faults ?? [];
    this.#delaysMs = options.delaysMs ?? [10, 30, 20];
    this.seen = new Map(
      options.addresses.map(({ address }) => [address, { shared: 0, stalest: 0, away: 0 }]),
    );
    this.machines = new Map(options.nodes.map((node, index) => [node, new Machine(this, node, index)]));
    for (const machine of this.machines.values()) {
      machine.start();
      for (const fault of this.#faults) {
        if (fault.node !== machine.node || fault.of !== 'dead') continue;
        this.after(fault.fromMs, () => machine.kill());
        this.after(fault.fromMs + fault.lastsMs, () => machine.start());
      }
    }
  }

  machine(node: string): Machine {
    const machine = this.machines.get(node);
    if (machine === undefined) throw new Error(`there is no node ${node}`);
    return machine;
  }

  get view(): AnnouncingView {
    return {
      addresses: new Map(this.#addresses.map((one) => [one.address, one])),
      nodes: new Map([...this.machines].map(([node, { object }]) => [node, object])),
      ...{ pools: [], isNeeded: true, namedInterfaces: new Set() },
    };
  }

  /** The Services are others from now on. */
  assign(addresses: readonly ServiceAddress[]): void {
    this.#addresses = addresses;
    for (const machine of this.machines.values()) machine.changed();
  }

  /** The nodes that have an address. */
  holders(address: string): readonly string[] {
    return [...this.machines.values()].filter((one) => one.kernel.has(address)).map(({ node }) => node);
  }

  /** Milliseconds until a fault of a node ends; 0: there is none now. */
  endsIn(node: string, of: Fault['of']): number {
    const present = this.#faults.filter(
      (fault) =>
        fault.node === node &&
        fault.of === of &&
        fault.fromMs <= this.nowMs &&
        this.nowMs < fault.fromMs + fault.lastsMs,
    );
    return Math.max(0, ...present.map(({ fromMs, lastsMs }) => fromMs + lastsMs - this.nowMs));
  }

  has(node: string, of: Fault['of']): boolean {
    return this.endsIn(node, of) > 0;
  }

  after(milliseconds: number, run: () => void): void {
    const atMs = this.nowMs + milliseconds;
    this.#due.splice(this.#due.findLastIndex((one) => one.atMs <= atMs) + 1, 0, { atMs, run });
  }

  delayMs(): number {
    return this.#delaysMs[this.#drawn++ % this.#delaysMs.length] ?? 10;
  }

  /** A write that replaces a version, and tells all watches; undefined: a conflict. */
  write(version: string, lease: Omit<Stored, 'version'>): Stored | undefined {
    if ((this.stored.get(lease.node)?.version ?? '') !== version) return undefined;
    const stored = { ...lease, version: String(++this.version) };
    this.stored.set(lease.node, stored);
    for (const machine of this.machines.values()) machine.send(stored);
    return stored;
  }

  /** Lets time pass. */
  runUntil(endMs: number): void {
    for (;;) {
      const [next] = this.#due;
      if (next === undefined || next.atMs > endMs) break;
      this.#due.shift();
      this.nowMs = Math.max(this.nowMs, next.atMs);
      next.run();
    }
    this.nowMs = endMs;
    this.observe();
  }

  /** Notes who has which address; to be called after each change of a kernel. */
  observe(): void {
    for (const [address, seen] of this.seen) {
      const holders = [...this.machines.values()].filter(({ kernel }) => kernel.has(address));
      const former = this.#before.get(address) ?? [];
      const since = (at: Map<string, number>, isSo: boolean): number => {
        const begun = at.get(address);
        if (!isSo) at.delete(address);
        else if (begun === undefined) at.set(address, this.nowMs);
        return begun === undefined ? 0 : this.nowMs - begun;
      };
      seen.shared = Math.max(seen.shared, since(this.#sharedSince, holders.length > 1));
      seen.away = Math.max(
        seen.away,
        since(this.#awaySince, holders.length === 0 && this.#before.has(address)),
      );
      const owners = holders.filter((machine) => former.includes(machine));
      for (const taker of holders.filter((machine) => !former.includes(machine))) {
        for (const owner of owners) {
          const renewedAtMs = Math.max(...[owner, taker].map((one) => one.renewalOf(owner.node)));
          seen.stalest = Math.max(seen.stalest, this.nowMs - renewedAtMs);
        }
      }
      if (holders.length > 0 || this.#before.has(address)) this.#before.set(address, holders);
    }
  }
}

/** A node: its kernel, and the process of its agent while there is one. */
export class Machine {
  readonly node: string;
  readonly object: Node;
  /** The addresses, and when they end. */
  readonly kernel = new Map<string, number>();
  /** By node: when the renewal was sent that this one has seen last. */
  readonly #renewals = new Map<string, number>();
  readonly #network: AgentNetwork;
  readonly #index: number;
  readonly #address: string;
  /** Undefined: there is no process. Callbacks of a former one do nothing. */
  #agent: AnnouncingAgent | undefined;
  /** Changes of Leases that the watch has still to bring. */
  #inbox: { readonly lease: Stored; readonly atMs: number }[] = [];
  #listedVersion = 0;
  #unconfirmed = new Set<string>();
  #tickAtMs = Number.POSITIVE_INFINITY;
  #known: { readonly version: string; readonly acquired: string | undefined } | undefined;
  #leaseSeconds = 0;

  constructor(network: AgentNetwork, node: string, index: number) {
    this.#network = network;
    this.node = node;
    this.#index = index;
    this.#address = `192.0.2.${11 + index}`;
    this.object = {
      ...{ apiVersion: 'v1', kind: 'Node', metadata: { name: node }, spec: {} },
      status: { addresses: [{ type: 'InternalIP', address: this.#address }] },
    };
  }

  /** Begins a process, once it can read the objects. */
  start(): void {
    const network = this.#network;
    const { onAPILoss = 'hold', restartGraceSeconds = 0 } = network.options;
    if (this.#agent !== undefined) return;
    if (network.has(this.node, 'dead')) return;
    const wait = Math.max(network.endsIn(this.node, 'api'), network.endsIn(this.node, 'pause'));
    if (wait > 0) {
      network.after(wait, () => this.start());
      return;
    }
    const lease = { ...defaultLeaseTimes, ...network.options.lease };
    const agent = new AnnouncingAgent({ node: this.node, onAPILoss, restartGraceSeconds, lease });
    this.#agent = agent;
    this.#known = undefined;
    this.#leaseSeconds = 0;
    this.#unconfirmed = new Set();
    this.#tickAtMs = Number.POSITIVE_INFINITY;
    this.#listedVersion = network.version;
    for (const lease of network.stored.values()) this.#hear({ on: 'lease', node: lease.node, lease });
    this.#hear(this.#kernelState());
    this.#hear({ on: 'view', view: network.view });
  }

  /** Ends the process at once; the kernel keeps its addresses until their lifetimes are over. */
  kill(): void {
    this.#agent = undefined;
  }

  /** Ends it in an orderly way. */
  leave(): void {
    this.#hear({ on: 'leave' });
  }

  /** When the renewal of a node was sent that this one has seen last. */
  renewalOf(node: string): number {
    return this.#renewals.get(node) ?? Number.NEGATIVE_INFINITY;
  }

  /** Whether there is a process. */
  get isRunning(): boolean {
    return this.#agent !== undefined;
  }

  /** A Lease has changed: in order, as a watch has it. */
  send(lease: Stored): void {
    const network = this.#network;
    this.#inbox.push({ lease, atMs: network.nowMs + network.delayMs() });
    if (this.#inbox.length === 1) this.#deliverNext();
  }

  /** The objects have changed. */
  changed(): void {
    this.#inProcess(this.#network.delayMs(), () => this.#hear({ on: 'view', view: this.#network.view }));
  }

  #deliverNext(): void {
    const network = this.#network;
    const [next] = this.#inbox;
    if (next === undefined) return;
    const wait = Math.max(
      next.atMs - network.nowMs,
      ...(['api', 'watch', 'pause'] as const).map((of) => network.endsIn(this.node, of)),
    );
    if (wait > 0) {
      network.after(wait, () => this.#deliverNext());
      return;
    }
    this.#inbox.shift();
    const { lease } = next;
    // A new process does not see what its list was newer than.
    if (Number(lease.version) > this.#listedVersion) {
      this.#renewals.set(lease.node, lease.sentAtMs);
      this.#hear({ on: 'lease', node: lease.node, lease });
    }
    this.#deliverNext();
  }

  #hear(event: AgentEvent): void {
    const agent = this.#agent;
    if (agent === undefined) return;
    for (const action of agent.handle(event, this.#network.nowMs)) this.#carryOut(agent, action);
    const { deadlineMs } = agent;
    if (deadlineMs >= this.#tickAtMs || deadlineMs === Number.POSITIVE_INFINITY) return;
    const tickAtMs = Math.max(deadlineMs, this.#network.nowMs + 1);
    this.#tickAtMs = tickAtMs;
    this.#inProcess(tickAtMs - this.#network.nowMs, () => {
      if (this.#tickAtMs !== tickAtMs) return;
      this.#tickAtMs = Number.POSITIVE_INFINITY;
      this.#hear(this.#kernelState());
      this.#hear({ on: 'tick' });
    });
  }

  /** Runs later in the present process, which may stand still then. */
  #inProcess(milliseconds: number, run: () => void): void {
    const agent = this.#agent;
    this.#network.after(milliseconds, () => {
      if (this.#agent !== agent) return;
      const wait = this.#network.endsIn(this.node, 'pause');
      if (wait > 0) this.#inProcess(wait, run);
      else run();
    });
  }

  #carryOut(agent: AnnouncingAgent, action: AgentAction): void {
    switch (action.do) {
      case 'look':
        this.#inProcess(batchMs, () => this.#end('looked'));
        return;
      case 'announce':
        this.#announce(agent, action.announcement);
        return;
      case 'renew':
        this.#leaseSeconds = Math.max(this.#leaseSeconds, action.leaseSeconds);
        this.#writeOwn(true, action.report, (version) =>
          this.#hear(
            version === undefined
              ? { on: 'renewalFailed' }
              : { on: 'renewed', version, leaseSeconds: this.#leaseSeconds },
          ),
        );
        return;
      case 'releaseOwn':
        this.#writeOwn(false, action.report, (version) =>
          this.#hear({ on: 'released', node: this.node, isDone: version !== undefined }),
        );
        return;
      case 'release': {
        const { node, version } = action;
        let isDone = false;
        this.#call(
          () => {
            const lease = this.#network.stored.get(node);
            if (lease === undefined) return;
            isDone = this.#network.write(version, { ...lease, acquired: undefined }) !== undefined;
          },
          (isAnswered) => this.#hear({ on: 'released', node, isDone: isDone && isAnswered }),
        );
        return;
      }
      case 'ask': {
        const { addresses, askedAtMs } = action;
        this.#datagram(action.to, {
          ...{ on: 'asked', node: this.node, from: this.#address, addresses },
          ticket: `${this.node} ${askedAtMs}`,
        });
        return;
      }
      case 'consent': {
        const { except, ticket } = action;
        const askedAtMs = Number(ticket.split(' ')[1]);
        this.#datagram(action.to, {
          ...{ on: 'consented', node: this.node, askedAtMs, except },
          from: this.#network.options.consentsFrom ?? this.#address,
        });
        return;
      }
      case 'stay':
        this.#apply([...this.kernel.keys()], action.seconds);
        this.#inProcess(batchMs, () => this.#end('stayed'));
        return;
      case 'end': {
        for (const address of this.kernel.keys())
          if (!action.addresses.has(address)) this.kernel.delete(address);
        this.#apply([...action.addresses], action.seconds);
        this.#network.observe();
        this.#agent = undefined;
        return;
      }
      case 'routes':
      case 'log':
    }
  }

  #end(on: 'looked' | 'announced' | 'stayed'): void {
    this.#hear(this.#kernelState());
    this.#hear({ on });
  }

  #kernelState(): AgentEvent {
    const announced = new Map([...this.kernel.keys()].map((address) => [address, ['eth0']]));
    const mac = `02:00:00:00:00:0${this.#index}`;
    const subnets = ['192.0.2.0/24'].flatMap((text) => parseCidr(text) ?? []);
    return {
      on: 'kernel',
      kernel: {
        ...{ announced, refused: [], interfaces: [{ name: 'eth0', subnets, mac, ownMac: mac }] },
        confirmed: [...announced.keys()].filter((address) => !this.#unconfirmed.has(address)),
        announceAgainAtMs: Number.POSITIVE_INFINITY,
      },
    };
  }

  /** As `Layer2Announcer.announce` does it. */
  #announce(agent: AnnouncingAgent, { addresses }: Layer2Plan): void {
    const network = this.#network;
    const wanted = new Set(addresses.map(({ address }) => address));
    for (const address of this.kernel.keys()) if (!wanted.has(address)) this.kernel.delete(address);
    network.observe();
    const kept = [...this.kernel.keys()];
    this.#refresh(agent, kept, () => {
      const fresh = addresses.filter(({ address }) => !this.kernel.has(address));
      if (fresh.length === 0 || agent.lifetimeSeconds(kept.length + fresh.length, network.nowMs) === 0) {
        this.#end('announced');
        return;
      }
      const isQuick = ({ address }: AddressToAnnounce): boolean => agent.isAgents(address, network.nowMs);
      this.#inProcess(fresh.every(isQuick) ? 1 : probeMs, () => {
        const added = fresh.map(({ address }) => address);
        for (const address of added) this.#unconfirmed.add(address);
        this.#refresh(agent, [...kept, ...added], () => {
          this.#unconfirmed.clear();
          this.#end('announced');
        });
      });
    });
  }

  /** Gives addresses their lifetime, and a shorter one at once where that has taken too long. */
  #refresh(agent: AnnouncingAgent, addresses: readonly string[], then: () => void): void {
    const network = this.#network;
    const lifetime = (address: string): number =>
      agent.lifetimeSeconds(addresses.length, network.nowMs, address);
    const given = addresses.map((address) => ({ address, seconds: lifetime(address) }));
    // The kernel does it, whether the process stands still or not.
    network.after(batchMs, () => {
      for (const { address, seconds } of given) if (seconds > 0) this.#apply([address], seconds);
    });
    this.#inProcess(batchMs, () => {
      for (const { address, seconds } of given) {
        const left = lifetime(address);
        if (left < seconds) this.#apply([address], left);
      }
      then();
    });
  }

  #apply(addresses: readonly string[], seconds: number): void {
    const network = this.#network;
    for (const address of addresses) {
      if (seconds === 0) {
        this.kernel.delete(address);
        continue;
      }
      const endMs = network.nowMs + seconds * 1000 + kernelLateMs;
      this.kernel.set(address, endMs);
      network.after(endMs - network.nowMs, () => {
        if (this.kernel.get(address) !== endMs) return;
        this.kernel.delete(address);
        network.observe();
      });
    }
    network.observe();
  }

  /** As `LeaseWriter` does it: a write that finds another version reads, and tries once more. */
  #writeOwn(
    isHeld: boolean,
    report: string,
    then: (version: string | undefined) => void,
    isAgain = false,
  ): void {
    const network = this.#network;
    const sentAtMs = network.nowMs;
    const write = (known: { readonly version: string; readonly acquired: string | undefined }): void => {
      const acquired = known.acquired ?? `${this.node} ${sentAtMs}`;
      let written: Stored | undefined;
      this.#call(
        () => {
          written = network.write(known.version, {
            ...{ node: this.node, seconds: this.#leaseSeconds, reportText: report, sentAtMs },
            acquired: isHeld ? acquired : undefined,
          });
        },
        (isAnswered) => {
          this.#known = undefined;
          if (isAnswered && written !== undefined) {
            this.#known = { version: written.version, acquired: isHeld ? acquired : undefined };
            then(written.version);
          } else if (isAnswered && !isAgain) this.#writeOwn(isHeld, report, then, true);
          else then(undefined);
        },
      );
    };
    if (this.#known !== undefined) {
      write(this.#known);
      return;
    }
    let read: Stored | undefined;
    this.#call(
      () => {
        read = network.stored.get(this.node);
      },
      (isAnswered) => {
        if (isAnswered) write({ version: read?.version ?? '', acquired: read?.acquired });
        else then(undefined);
      },
    );
  }

  /** A request to the API server, which may come late, or be lost on its way or on that of the answer. */
  #call(request: () => void, answer: (isAnswered: boolean) => void): void {
    const network = this.#network;
    const isLost = (): boolean => network.has(this.node, 'api');
    const agent = this.#agent;
    const sentAtMs = network.nowMs;
    const fail = (): void =>
      this.#inProcess(Math.max(0, sentAtMs + requestTimeoutMs - network.nowMs), () => answer(false));
    network.after(network.delayMs(), () => {
      if (isLost()) {
        if (this.#agent === agent) fail();
        return;
      }
      request();
      if (this.#agent !== agent) return;
      this.#inProcess(network.delayMs(), () => {
        if (isLost()) fail();
        else answer(true);
      });
    });
  }

  #datagram(to: string, event: AgentEvent): void {
    const network = this.#network;
    const receiver = [...network.machines.values()].find((one) => one.#address === to);
    if (receiver === undefined || network.has(this.node, 'heartbeats')) return;
    network.after(network.delayMs(), () => {
      if (network.has(receiver.node, 'heartbeats')) return;
      receiver.#inProcess(0, () => receiver.#hear(event));
    });
  }
}
