import type { Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import type { Authenticator } from '../authentication/authenticator.ts';
import type { Handler, UpgradeHandler } from './exchange.ts';

/** PEM texts. `clientCa` turns client certificates on. */
export interface TlsMaterial {
  readonly certificate: string;
  readonly key: string;
  readonly clientCa?: string;
}

export interface HttpServerOptions {
  readonly tls: TlsMaterial;
  readonly authenticator: Authenticator;
  /** Serves every authenticated request; throws StatusError to answer an error. */
  readonly handler: Handler;
  /** Serves authenticated HTTP upgrades; absent: they are refused. */
  readonly upgrade?: UpgradeHandler;
  readonly log: Logger;
  readonly limits?: Partial<HttpLimits>;
}

export interface HttpLimits {
  /** Requests with a verb other than get, list, watch in flight (`--max-mutating-requests-inflight`, 200). */
  readonly maxMutatingInFlight: number;
  /** Reads in flight, watches not counted (`--max-requests-inflight`, 400). */
  readonly maxReadOnlyInFlight: number;
  /** Milliseconds in which a request must have arrived in full, 60,000. */
  readonly requestTimeout: number;
  /** Milliseconds an idle connection is kept. */
  readonly keepAliveTimeout: number;
  /** Milliseconds for the headers, 10,000. */
  readonly headersTimeout: number;
}

export interface HttpServer {
  /** Starts to listen; port 0 takes any free one. */
  listen(port: number, host: string): Promise<AddressInfo>;
  /**
   * Stops to accept, ends open watches (their `signal` aborts), waits up to `graceMs` for requests in flight,
   * then closes what is left. A second call closes at once.
   */
  close(graceMs?: number): Promise<void>;
  /** The server itself, for tests and for the port. */
  readonly server: Server;
}

export function createHttpServer(_options: HttpServerOptions): HttpServer {
  throw new Error('not built yet');
}
