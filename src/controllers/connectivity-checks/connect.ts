import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { connect as tcpConnect, isIP, type Socket } from 'node:net';
import type { Clock } from '../../client/clock.ts';
import { type CheckResult, hostAndPort } from './status.ts';
import { joinHostPort } from '../../objects/address.ts';
import { errorMessage } from '../../objects/error-message.ts';

/** A network that connections are opened from. */
export interface CheckNetwork {
  /** The addresses of a name. @throws the reason in Go's words. */
  lookUp(name: string, signal: AbortSignal): Promise<readonly string[]>;
  /** Opens a TCP connection. @throws the system's error, with its `code`. */
  connect(address: string, port: number, signal: AbortSignal): Promise<Socket>;
}

/** The network of this process. */
export const processNetwork: CheckNetwork = {
  lookUp: async (name) => (await lookup(name, { all: true })).map(({ address }) => address),
  connect: async (host, port, signal) => {
    const socket = tcpConnect({ host, port });
    try {
      await once(socket, 'connect', { signal });
      return socket;
    } catch (error) {
      socket.destroy();
      throw error;
    }
  },
};

/** A network without the addresses that are simulated: in that of the machine they may be real hosts. */
export function withoutSimulated(
  network: CheckNetwork,
  isSimulated: (address: string) => boolean,
): CheckNetwork {
  return {
    lookUp: async (name, signal) => network.lookUp(name, signal),
    connect: async (address, port, signal) => {
      if (isSimulated(address))
        throw new Error('the address is simulated, and is not dialed from this machine');
      return network.connect(address, port, signal);
    },
  };
}

/**
 * Opens a connection to an endpoint, and returns the result. A name is looked up first; its first address is used.
 */
export async function checkEndpoint(
  network: CheckNetwork,
  endpoint: string,
  timeout: number,
  clock: Clock,
): Promise<CheckResult> {
  const { host, port } = hostAndPort(endpoint);
  const signal = AbortSignal.timeout(timeout);
  const begun = clock.now();
  const before = clock.monotonic();
  const since = (): number => clock.monotonic() - before;
  let address = host;
  let dns: CheckResult['dns'];
  if (isIP(host) === 0) {
    try {
      [address = ''] = await network.lookUp(host, signal);
      dns = { start: begun, latency: since() };
    } catch (error) {
      return {
        dns: { start: begun, latency: since() },
        error: `dial tcp: lookup ${host}: ${lookupError(error)}`,
      };
    }
  }
  const waited = since();
  const start = begun + waited;
  try {
    const socket = await network.connect(address, Number(port), signal);
    socket.on('error', () => undefined);
    socket.destroy();
    return { ...(dns === undefined ? {} : { dns }), connect: { start, latency: since() - waited } };
  } catch (error) {
    const where = joinHostPort(address, port);
    return {
      ...(dns === undefined ? {} : { dns }),
      connect: { start, latency: since() - waited },
      error: `dial tcp ${where}: ${signal.aborted ? 'i/o timeout' : systemError(error)}`,
    };
  }
}

/** Go's words for errors of the system (`syscall.Errno`). */
const words: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connect: connection refused',
  EHOSTUNREACH: 'connect: no route to host',
  ENETUNREACH: 'connect: network is unreachable',
  ECONNRESET: 'connect: connection reset by peer',
  EACCES: 'connect: permission denied',
  EADDRNOTAVAIL: 'connect: cannot assign requested address',
  ETIMEDOUT: 'connect: connection timed out',
};

function systemError(error: unknown): string {
  const known = words[codeOf(error)];
  return known ?? errorMessage(error);
}

function lookupError(error: unknown): string {
  const code = codeOf(error);
  if (code === 'ENOTFOUND' || code === 'ENODATA') return 'no such host';
  return errorMessage(error);
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}
