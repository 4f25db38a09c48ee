import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { systemClock } from '../../../src/client/clock.ts';
import type { Host } from '../../../src/host/host.ts';
import type { Peer, PeerRoute } from '../../../src/network/bgp/route.ts';
import { prefixKey } from '../../../src/network/bgp/route.ts';
import { BGPSpeaker } from '../../../src/node/announce/bgp.ts';
import { parseCidr } from '../../../src/objects/address.ts';
import type { Located } from './network.ts';

/** The speaker of a node. */
export function speakerAt(host: Host): BGPSpeaker {
  return new BGPSpeaker({
    ...{ host, clock: systemClock, random: Math.random, changed: () => undefined },
    log: pino({ level: 'silent' }),
  });
}

/** The speaker of a node in a process of its own. */
export class SpeakerProcess {
  readonly #node: Located;
  /** In the machine. */
  readonly #pid: string;
  /** What entered the machine: it stops when the process inside does. */
  readonly #outer: ChildProcess;

  private constructor(node: Located, pid: string, outer: ChildProcess) {
    this.#node = node;
    this.#pid = pid;
    this.#outer = outer;
  }

  static async start(node: Located, peer: Peer, cidrs: readonly string[]): Promise<SpeakerProcess> {
    const file = fileURLToPath(new URL('speaker-process.ts', import.meta.url));
    const { address, routerId, peerAs, localAs, holdSeconds, restartSeconds } = peer;
    const settings = [address, routerId, ...[peerAs, localAs, holdSeconds, restartSeconds].map(String)];
    const words = [...node.enter, process.execPath, file, ...settings, ...cidrs];
    const started = spawn(words[0] ?? '', words.slice(1), { stdio: ['ignore', 'pipe', 'inherit'] });
    const pid: unknown[] = await Promise.race([once(started.stdout, 'data'), once(started, 'exit')]);
    return new SpeakerProcess(node, String(pid[0]).trim(), started);
  }

  async kill(signal: 'KILL' | 'STOP'): Promise<void> {
    await this.#node.machine.host.exec('kill', [`-${signal}`, this.#pid]);
    if (signal === 'KILL') this.#outer.kill('SIGKILL');
  }
}

/** The router `outside`, as the BGPPeer of a node says. */
export function peerAt(router: Located, node: Located, changed: Partial<Peer> = {}): Peer {
  return {
    ...{ name: 'router', address: router.addresses.IPv4, port: 179, peerAs: 64513, localAs: 64512 },
    ...{ routerId: node.addresses.IPv4, sourceAddress: undefined, holdSeconds: 3, restartSeconds: 0 },
    ...changed,
  };
}

/** Routes to networks. */
export function routesTo(
  cidrs: readonly string[],
  attributes: Partial<Omit<PeerRoute, 'prefix'>> = {},
): ReadonlyMap<string, PeerRoute> {
  return new Map(
    cidrs.map((text) => {
      const cidr = parseCidr(text);
      if (cidr === undefined) throw new Error(`${text} is no network`);
      const prefix = { family: cidr.family, network: cidr.network, length: cidr.prefixLength };
      return [prefixKey(prefix), { communities: [], largeCommunities: [], ...attributes, prefix }];
    }),
  );
}

/** Numbers of addresses as /32 and /128. */
export function manyRoutes(count: number): readonly string[] {
  return Array.from({ length: count }, (_, n) => `10.200.${Math.floor(n / 256)}.${n % 256}/32`);
}
