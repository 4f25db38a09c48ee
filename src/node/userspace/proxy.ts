import type { Clock, Random } from '../../client/clock.ts';
import {
  type Candidate,
  type ForwardVerdict,
  sourceOf,
  verdictFor,
} from '../../network/forwarding/verdict.ts';
import type { Logger } from 'pino';
import type { ExecResult, Host } from '../../host/host.ts';
import type {
  Destination,
  ForwardingPlan,
  PlannedEndpoint,
  ServicePortPlan,
} from '../../network/forwarding/forwarding-plan.ts';
import type { DataPath } from '../forwarding/agent.ts';
import type { SyncResult } from '../nftables/writer.ts';
import { type Listener, TcpListener, UdpListener } from './listeners.ts';

/** Most clients that are remembered; the one that came longest ago is forgotten. */
const maxClients = 100_000;

/** Chooses the endpoint of a connection as the kernel does: at random, or the client's former one. */
export class EndpointChoice {
  readonly #random: Random;
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** By Service port and client; in the order of the last connection. */
  readonly #former = new Map<string, { readonly endpoint: string; readonly until: number }>();

  constructor(random: Random, clock: Pick<Clock, 'monotonic'>) {
    this.#random = random;
    this.#clock = clock;
  }

  choose({ candidates, port, affinitySeconds }: ForwardVerdict, client: string): Candidate {
    const drawn = candidates[Math.floor(this.#random() * candidates.length)];
    if (drawn === undefined) throw new RangeError(`${port.id} has no candidates`);
    if (affinitySeconds === undefined) return drawn;
    const key = `${port.id} ${client}`;
    const now = this.#clock.monotonic();
    const former = this.#former.get(key);
    const kept =
      former !== undefined && now < former.until
        ? candidates.find((candidate) => nameOf(candidate) === former.endpoint)
        : undefined;
    const chosen = kept ?? drawn;
    this.#former.delete(key);
    this.#former.set(key, { endpoint: nameOf(chosen), until: now + affinitySeconds * 1000 });
    if (this.#former.size > maxClients) {
      const [oldest] = this.#former.keys();
      if (oldest !== undefined) this.#former.delete(oldest);
    }
    return chosen;
  }
}

function nameOf({ endpoint }: Candidate): string {
  return `${endpoint.address} ${endpoint.port}`;
}

export interface UserspaceProxyOptions {
  readonly host: Host;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** An address and port at which a node must listen. */
interface ListenAddress {
  readonly port: ServicePortPlan;
  readonly address: string;
  readonly number: number;
}

/**
 * Forwards the traffic of Services without nftables, for machines that lack it: this process accepts connections to the
 * addresses of Services and connects them to endpoints, on the same plan. It listens only where a connection can go
 * somewhere, so that others are refused by the kernel.
 *
 * Unlike the kernel: endpoints see the node as the client always, what the plan drops is refused,
 * and SCTP is left out.
 */
export class UserspaceProxy implements DataPath {
  readonly #options: UserspaceProxyOptions;
  readonly #choice: EndpointChoice;
  readonly #listeners = new Map<string, Listener>();
  /** Addresses of Services that the node has been given, so that it takes their packets. */
  readonly #addresses = new Set<string>();
  /** Closed listeners whose connections go on, with their addresses. */
  readonly #closed = new Map<Listener, string>();
  #mayLackAddresses = false;
  #plan: ForwardingPlan | undefined;

  constructor(options: UserspaceProxyOptions) {
    this.#options = options;
    this.#choice = new EndpointChoice(options.random, options.clock);
  }

  /**
   * Listens by the plan. One call at a time.
   *
   * @throws {Error} where `ip` is missing or refuses an address; the next sync tries again.
   */
  async sync(plan: ForwardingPlan): Promise<SyncResult> {
    this.#plan = plan;
    const places = listenAddressesOf(plan);
    for (const [key, listener] of this.#listeners) {
      if (places.has(key)) continue;
      listener.close();
      this.#listeners.delete(key);
      this.#closed.set(listener, key.slice(0, key.indexOf(' ')));
    }
    for (const listener of this.#closed.keys()) if (!listener.isInUse) this.#closed.delete(listener);
    await this.#giveAddresses(plan);
    for (const [key, place] of places) {
      const listener = this.#listeners.get(key) ?? (await this.#open(key, place));
      if (listener instanceof UdpListener) {
        const serving = new Set(
          place.port.servingEndpoints?.map(({ address, port }) => `${address} ${port}`),
        );
        listener.keep(({ address, port }) => serving.has(`${address} ${port}`));
      }
    }
    return { transactions: 0, elements: 0, former: [] };
  }

  /** Addresses that something else took away are given again. */
  invalidate(): void {
    this.#mayLackAddresses = true;
  }

  /** Closes all listeners, and takes the addresses away. Connections that are open go on. */
  async close(): Promise<void> {
    for (const listener of this.#listeners.values()) listener.close();
    this.#listeners.clear();
    await this.#ip([...this.#addresses].map((address) => lineFor('del', address)));
    this.#addresses.clear();
  }

  /** A port that is taken by another program is tried again with the next sync. */
  async #open(key: string, place: ListenAddress): Promise<Listener | undefined> {
    const { host, clock, log } = this.#options;
    const { address, number, port } = place;
    const choose = (client: string): PlannedEndpoint | undefined => this.#choose(place, client);
    try {
      const listener =
        port.protocol === 'TCP'
          ? await TcpListener.open(host, address, number, choose, log)
          : await UdpListener.open(host, address, number, choose, clock, log);
      this.#listeners.set(key, listener);
      return listener;
    } catch (error) {
      log.warn(
        { err: error, key: port.service, reason: 'ListenFailed', address, port: number },
        'cannot listen for a Service: is another program there?',
      );
      return undefined;
    }
  }

  #choose({ port, address, number }: ListenAddress, client: string): PlannedEndpoint | undefined {
    if (this.#plan === undefined) return undefined;
    const verdict = verdictFor(this.#plan, {
      // The node's own connections to an address that it was given come from that address.
      source: client === address ? 'node' : sourceOf(this.#plan, client),
      ...{ sourceAddress: client, protocol: port.protocol },
      ...{ destinationAddress: address, destinationPort: number },
    });
    return verdict.verdict === 'forward' ? this.#choice.choose(verdict, client).endpoint : undefined;
  }

  /**
   * Makes the addresses of Services the node's own. IPv4 by routes, which no program takes for an address of the node;
   * IPv6 sockets need an address. One that has open connections stays until a later sync.
   */
  async #giveAddresses(plan: ForwardingPlan): Promise<void> {
    const own = new Set(plan.node.families.flatMap(({ nodeAddresses }) => nodeAddresses));
    const wanted = new Set(this.#closed.values());
    for (const { destination } of plan.destinations.values()) {
      const { address } = destination;
      if (address !== undefined && (this.#addresses.has(address) || !own.has(address))) wanted.add(address);
    }
    const added = [...wanted].filter((address) => this.#mayLackAddresses || !this.#addresses.has(address));
    const removed = [...this.#addresses].filter((address) => !wanted.has(address));
    await this.#ip(removed.map((address) => lineFor('del', address)));
    const { exitCode, stderr } = await this.#ip(added.map((address) => lineFor('replace', address)));
    if (exitCode !== 0)
      throw new Error(`ip could not give the node the addresses of Services: ${stderr.trim()}`);
    this.#mayLackAddresses = false;
    for (const address of removed) this.#addresses.delete(address);
    for (const address of added) this.#addresses.add(address);
  }

  /** `-force`: a line that fails, such as for a route that is gone already, keeps no other from its work. */
  async #ip(lines: readonly string[]): Promise<ExecResult> {
    if (lines.length === 0) return { exitCode: 0, stdout: '', stderr: '' };
    return this.#options.host.exec('ip', ['-force', '-batch', '-'], { input: `${lines.join('\n')}\n` });
  }
}

function lineFor(verb: 'replace' | 'del', address: string): string {
  return address.includes(':')
    ? `address ${verb} ${address}/128 dev lo${verb === 'del' ? '' : ' nodad'}`
    : `route ${verb} local ${address} dev lo`;
}

/** The listeners by address, protocol and port: those at which at least one source is forwarded. */
function listenAddressesOf({ destinations, node }: ForwardingPlan): Map<string, ListenAddress> {
  const places = new Map<string, ListenAddress>();
  const add = (port: ServicePortPlan, destination: Destination, address: string): void => {
    const key = `${address} ${port.protocol} ${destination.port}`;
    // Addresses of Services go before node ports.
    if (destination.address === undefined && places.has(key)) return;
    places.set(key, { port, address, number: destination.port });
  };
  for (const { port, destination } of destinations.values()) {
    const isForwarded = Object.values(destination.actions).some(({ action }) => action === 'forward');
    if (!isForwarded || port.protocol === 'SCTP') continue;
    const family = node.families.find((each) => each.family === port.family);
    const { nodePortAddresses = [], nodeAddresses = [] } = family ?? {};
    const ofNode = nodePortAddresses === 'all' ? nodeAddresses : nodePortAddresses;
    const addresses = destination.address === undefined ? ofNode : [destination.address];
    for (const address of addresses) add(port, destination, address);
  }
  return places;
}
