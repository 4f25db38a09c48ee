import { ip } from '../namespaces.ts';
import type { Informer } from '../../client/informers/informer.ts';
import { networkAttachmentDefinitions, addressPools, services } from '../../client/resources.ts';
import { lanGateways, ownerAmongServices } from '../../network/attachments/network-config.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type { NetworkAttachmentDefinition } from '../../objects/types/openshift.ts';
import type { ControllerContext, Runnable } from '../../runtime/context.ts';
import { KeyLoop } from '../../runtime/key-loop.ts';
import { lanInterface } from '../lan.ts';
import { announcedPools } from '../../network/announcing/assigned-addresses.ts';
import type { AddressPool } from '../../objects/types/servicenet.ts';

/** A machine that can be plugged into a LAN. */
interface Pluggable {
  /** Of its network namespace, and the beginning of the names of its ports. */
  readonly name: string;
}

/** The machine that belongs to no cluster. */
const outside: Pluggable = { name: 'outside' };

/**
 * LANs beside the one that nodes are on: `eth1` to `eth9` of the nodes are on a switch each, with `outside`. A machine has
 * such an interface once a network names it.
 */
export class SecondLans {
  /** By the interface: the promise that makes its switch. */
  readonly #switches = new Map<string, Promise<void>>();
  /** By the name of the port: the promise that connects it. */
  readonly #ports = new Map<string, Promise<void>>();

  /** Whether an interface is one of these. */
  static has(device: string): boolean {
    return /^eth[1-9]$/.test(device);
  }

  /** Gives a machine its interface on the LAN of that name. @throws {Error} of ip. */
  async plugIn(machine: Pluggable, device: string): Promise<void> {
    const number = device.slice('eth'.length);
    await once(this.#switches, device, () =>
      ip([`link add lan${number} type bridge`, `link set lan${number} up`]),
    );
    await this.#port(outside, device);
    await this.#port(machine, device);
  }

  /** `outside` alone. @throws {Error} of ip. */
  plugInOutside(device: string): Promise<void> {
    return this.plugIn(outside, device);
  }

  /** Cuts a machine off, or connects it again. @throws {Error} of ip. */
  async setDown({ name }: Pluggable, down: boolean): Promise<void> {
    const ports = [...this.#ports.keys()].filter((port) => port.startsWith(`${name}-`));
    if (ports.length > 0) await ip(ports.map((port) => `link set ${port} ${down ? 'down' : 'up'}`));
  }

  /** Forgets a machine that is gone, with its interfaces. */
  forget({ name }: Pluggable): void {
    for (const port of this.#ports.keys()) if (port.startsWith(`${name}-`)) this.#ports.delete(port);
  }

  #port({ name }: Pluggable, device: string): Promise<void> {
    const number = device.slice('eth'.length);
    const port = `${name}-${number}`;
    return once(this.#ports, port, async () => {
      try {
        await ip([
          `link add ${port} type veth peer name ${device} netns ${name}`,
          `link set ${port} master lan${number} up`,
        ]);
        await ip([`link set ${device} up`], name);
      } catch (error) {
        // The next attempt would find it.
        await ip([`link delete ${port}`]).catch(() => undefined);
        throw error;
      }
    });
  }
}

/** Does the work for a key unless it was done; a failure is tried again by the next caller. */
function once(done: Map<string, Promise<void>>, key: string, work: () => Promise<void>): Promise<void> {
  const before = done.get(key);
  if (before !== undefined) return before;
  const made = work().catch((error: unknown) => {
    done.delete(key);
    throw error;
  });
  done.set(key, made);
  return made;
}

/** The one key of the queue. */
const gateways = 'gateways';

/**
 * Gives `outside` the addresses of the gateways that networks of macvlan name: it is the router of these networks, and the
 * machine that Pods meet there.
 */
export class LanGateways implements Runnable {
  readonly #context: ControllerContext;
  readonly #loop: KeyLoop;
  readonly #definitions: Informer<NetworkAttachmentDefinition>;
  readonly #lans: SecondLans;
  /** Ranges whose addresses belong to machines, Pods and Services. */
  readonly #taken: readonly string[];
  readonly #pools: Informer<AddressPool>;
  readonly #services: Informer<Service>;
  readonly #present = new Set<string>();
  /** Gateways that are left to others, with these: each is said once. */
  #left: ReadonlyMap<string, string> = new Map();

  constructor(context: ControllerContext, lans: SecondLans, taken: readonly string[]) {
    this.#context = context;
    this.#lans = lans;
    this.#taken = taken;
    this.#definitions = context.informers.informer(networkAttachmentDefinitions);
    this.#pools = context.informers.informer(addressPools);
    this.#services = context.informers.informer(services);
    this.#loop = new KeyLoop(context, 'lan_gateways', { workers: 1 }, (loop) => {
      loop.on(loop.cache(networkAttachmentDefinitions), () => [gateways]);
      loop.on(loop.cache(addressPools), () => [gateways]);
      loop.on(loop.cache(services), () => [gateways]);
      return () => this.#reconcile();
    });
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#loop.run(signal);
  }

  async #reconcile(): Promise<undefined> {
    const wanted = new Set<string>();
    const left = new Map<string, string>();
    const pools = announcedPools(this.#pools.cache.values());
    for (const gateway of lanGateways(this.#definitions.cache.values(), this.#taken)) {
      const { master = lanInterface, address, prefixLength } = gateway;
      const owner = ownerAmongServices(gateway, pools, this.#services.cache.values());
      if (owner !== undefined) {
        left.set(address, owner);
        continue;
      }
      if (SecondLans.has(master)) await this.#lans.plugInOutside(master);
      else if (master !== lanInterface) continue;
      wanted.add(`${address}/${prefixLength} dev ${master}`);
    }
    for (const [gateway, owner] of left) {
      if (this.#left.get(gateway) === owner) continue;
      this.#context.log.warn(
        { gateway, owner, reason: 'GatewayTaken' },
        'outside is not the gateway of a network: the address is for Services; choose another one, or exclude it in the pool',
      );
    }
    this.#left = left;
    for (const each of [...this.#present].filter((one) => !wanted.has(one))) {
      await ip([`address delete ${each}`], 'outside');
      this.#present.delete(each);
    }
    for (const each of [...wanted].filter((one) => !this.#present.has(one))) {
      try {
        await ip([`address replace ${each}${each.includes(':') ? ' nodad' : ''}`], 'outside');
        this.#present.add(each);
      } catch (error) {
        // Such as the address of a network: the others are not to wait for it.
        this.#context.log.warn(
          { err: error, reason: 'InvalidGateway' },
          'outside cannot be the gateway of a network: correct its NetworkAttachmentDefinition',
        );
      }
    }
    return undefined;
  }
}

/** The one key of the queue. */
const routes = 'routes';

/**
 * Keeps routes of `outside`: the addresses of pools that nodes announce on the LAN are asked for there by ARP and NDP.
 * Others lead to a node.
 */
export class OnLinkPools implements Runnable {
  readonly #loop: KeyLoop;
  readonly #pools: Informer<AddressPool>;
  #present: ReadonlySet<string> = new Set();

  constructor(context: ControllerContext) {
    this.#pools = context.informers.informer(addressPools);
    this.#loop = new KeyLoop(context, 'on_link_pools', { workers: 1 }, (loop) => {
      loop.on(loop.cache(addressPools), () => [routes]);
      return () => this.#reconcile();
    });
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#loop.run(signal);
  }

  async #reconcile(): Promise<undefined> {
    const wanted = new Set(
      announcedPools(this.#pools.cache.values())
        .filter(({ announcement }) => announcement.layer2?.interfaces?.includes(lanInterface) === true)
        .flatMap(({ ranges }) => ranges.flatMap((range) => range.cidrs())),
    );
    const lines = [
      ...[...wanted].map((cidr) => `route replace ${cidr} dev ${lanInterface}`),
      ...[...this.#present]
        .filter((cidr) => !wanted.has(cidr))
        .map((cidr) => `route delete ${cidr} dev ${lanInterface}`),
    ];
    if (lines.length > 0) await ip(lines, 'outside');
    this.#present = wanted;
    return undefined;
  }
}
