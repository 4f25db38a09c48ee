import { setTimeout as sleep } from 'node:timers/promises';
import type { Host } from '../../../host/host.ts';
import { neighbours } from './links.ts';

/** Addresses that are asked for at once: the kernel remembers 1,024 neighbours by default. */
const atOnce = 256;

/** Milliseconds after the question at which the neighbours are read: most machines answer within the first. */
const readAfter = [25, 175] as const;

/** The discard port (RFC 863). */
const discardPort = 9;

/**
 * Asks the network who has addresses, without a raw socket: a byte to each makes the kernel ask by ARP and NDP, and its
 * neighbours tell who has answered. The addresses are in subnets of the machine, and none is its own.
 *
 * @returns the MAC address of those that are answered for, within 0.2 s for each 256 of them.
 * @throws {Error} where the neighbours are not listed.
 */
export async function whoHas(host: Host, addresses: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (let begin = 0; begin < addresses.length; begin += atOnce) {
    const some = addresses.slice(begin, begin + atOnce);
    await forget(host, some);
    await askFor(host, some);
    for (const milliseconds of readAfter) {
      await sleep(milliseconds);
      const known = await neighbours(host);
      for (const address of some) {
        const mac = known.get(address);
        if (mac !== undefined) found.set(address, mac);
      }
      if (some.every((address) => found.has(address))) break;
    }
  }
  return found;
}

/** An entry of an earlier holder would count as an answer. */
async function forget(host: Host, addresses: readonly string[]): Promise<void> {
  const lines = addresses.map((address) => `neighbour flush to ${address}`);
  await host.exec('ip', ['-force', '-batch', '-'], { input: `${lines.join('\n')}\n` });
}

async function askFor(host: Host, addresses: readonly string[]): Promise<void> {
  for (const any of ['0.0.0.0', '::'] as const) {
    const ofFamily = addresses.filter((address) => address.includes(':') === (any === '::'));
    if (ofFamily.length === 0) continue;
    const socket = await host.datagram(any, 0);
    try {
      // ICMP errors of former datagrams come as errors of the socket.
      socket.on('error', () => undefined);
      await Promise.all(
        ofFamily.map(
          (address) =>
            new Promise<void>((resolve) => socket.send(Buffer.of(0), discardPort, address, () => resolve())),
        ),
      );
    } finally {
      socket.close();
    }
  }
}
