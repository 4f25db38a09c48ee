import type { Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { once } from 'node:events';
import { type buildConnector, type Dispatcher, H2CClient, Pool } from 'undici';
import type { Clock } from '../client/clock.ts';
import type { Host } from '../host/host.ts';

/** The target of one request. */
export interface ForwardTarget {
  readonly address: string;
  readonly port: number;
  /** `https` re-encrypts. */
  readonly protocol: 'http' | 'h2c' | 'https';
  /**
   * The name that the certificate of an `https` target must have, unless {@link ca} is given:
   * `<Service>.<namespace>.svc`.
   */
  readonly serverName: string;
  /** PEM of the authorities that may sign its certificate; undefined: those of Node.js. */
  readonly ca: string | undefined;
}

export interface ConnectionOptions {
  readonly host: Host;
  readonly clock: Clock;
  /** Milliseconds to connect, TLS included. */
  readonly connectTimeout: number;
  /** Milliseconds that a backend may be silent, before its headers and between two pieces of its body. */
  readonly backendTimeout: number;
}

interface Entry {
  readonly dispatcher: Dispatcher;
  usedAt: number;
}

/** Milliseconds after its last request until what is kept for a target is closed. */
const idleTime = 60_000;

/** The connections to backends: kept open between requests, one request on each at a time. */
export class BackendConnections {
  readonly #options: ConnectionOptions;
  readonly #entries = new Map<string, Entry>();
  #sweep: { cancel(): void } | undefined;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /** The dispatcher of a target. Its requests continue when the target is forgotten. */
  to(target: ForwardTarget): Dispatcher {
    const { clock, backendTimeout } = this.#options;
    const { address, port, protocol, serverName, ca = '' } = target;
    const key =
      protocol === 'https' ? `${address} ${port} ${serverName} ${ca}` : `${protocol} ${address} ${port}`;
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      const origin = `http://${address.includes(':') ? `[${address}]` : address}:${port}`;
      const timeouts = { headersTimeout: backendTimeout, bodyTimeout: backendTimeout };
      const connect: buildConnector.connector = (_, done) => {
        this.connect(target).then(
          // Without TLS there is no ALPN: undici uses HTTP/2 if the socket reports that it was chosen.
          (socket) => done(null, protocol === 'h2c' ? Object.assign(socket, { alpnProtocol: 'h2' }) : socket),
          (error: unknown) => done(error instanceof Error ? error : new Error(String(error)), null),
        );
      };
      const dispatcher =
        protocol === 'h2c'
          ? new H2CClient(origin, { ...timeouts, connect })
          : new Pool(origin, { ...timeouts, pipelining: 1, connections: null, allowH2: false, connect });
      entry = { dispatcher, usedAt: 0 };
      this.#entries.set(key, entry);
      this.#sweepLater();
    }
    entry.usedAt = clock.monotonic();
    return entry.dispatcher;
  }

  /**
   * Opens a connection, re-encrypted if the target requires it.
   *
   * @throws {Error} of the system, TLS, or the timeout.
   */
  async connect(target: ForwardTarget): Promise<Socket | TLSSocket> {
    const { host, connectTimeout } = this.#options;
    const { address, port, protocol, serverName, ca } = target;
    const signal = AbortSignal.timeout(connectTimeout);
    const socket = await host.connect(address, port, { signal });
    socket.setNoDelay(true);
    if (protocol !== 'https') return socket;
    const secure = connectTls({
      ...{ socket, servername: serverName, ALPNProtocols: ['http/1.1'] },
      // The router of OpenShift checks the name only where the authority is a common one.
      ...(ca === undefined ? {} : { ca, checkServerIdentity: () => undefined }),
    });
    try {
      await once(secure, 'secureConnect', { signal });
    } catch (error) {
      secure.destroy();
      throw signal.aborted ? signal.reason : error;
    }
    return secure;
  }

  /** Closes what is idle, cuts what is not. */
  async close(): Promise<void> {
    this.#sweep?.cancel();
    await Promise.all([...this.#entries.values()].map(async ({ dispatcher }) => dispatcher.destroy()));
    this.#entries.clear();
  }

  #sweepLater(): void {
    const { clock } = this.#options;
    this.#sweep ??= clock.after(idleTime, () => {
      this.#sweep = undefined;
      for (const [key, { dispatcher, usedAt }] of this.#entries) {
        if (clock.monotonic() - usedAt < idleTime) continue;
        this.#entries.delete(key);
        // Running requests end first. A connection that fails meanwhile has failed its request.
        dispatcher.close().catch(() => undefined);
      }
      if (this.#entries.size > 0) this.#sweepLater();
    });
  }
}
