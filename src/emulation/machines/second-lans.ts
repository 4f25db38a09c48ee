import { ip } from '../ip.ts';

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
