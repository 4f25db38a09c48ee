import type { Server } from 'node:http';
import type { Logger } from 'pino';
import { type Clock, whenAborted } from '../client/clock.ts';
import type { Host } from '../host/host.ts';

/** The address of a server. */
export interface BindAddress {
  /** An IP address; empty or unspecified: all of both families. */
  readonly host: string;
  readonly port: number;
}

export interface ListeningOptions {
  readonly host: Host;
  readonly clock: Clock;
  readonly log: Logger;
  readonly address: BindAddress;
  /** The log line where the port is taken. */
  readonly message: string;
}

/** Milliseconds between tries to listen. */
const retryDelayMs = 5000;

/**
 * Serves on an address until the signal aborts; where the port is taken, tries again until it is free.
 *
 * @param open makes a server, one for each family.
 */
export async function serveAt(
  { host, clock, log, address, message }: ListeningOptions,
  open: () => Server,
  signal: AbortSignal,
): Promise<void> {
  const { port } = address;
  // An unspecified address is that of both families, as in Go.
  const isAll = ['', '0.0.0.0', '::'].includes(address.host);
  const servers: Server[] = [];
  let isLogged = false;
  for (const own of isAll ? ['0.0.0.0', '::'] : [address.host]) {
    while (!signal.aborted) {
      const server = open();
      try {
        await host.listen(server, own, port);
        servers.push(server);
        break;
      } catch (error) {
        if (isAll && hasNoFamily(error)) break;
        if (!isLogged) log.warn({ address: own, port, err: error }, message);
        isLogged = true;
        await clock.sleep(retryDelayMs, signal);
      }
    }
  }
  await whenAborted(signal);
  for (const server of servers) {
    server.close();
    server.closeAllConnections();
  }
}

/** The machine has no IPv6, or no IPv4. */
function hasNoFamily(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'EAFNOSUPPORT' || code === 'EADDRNOTAVAIL';
}
