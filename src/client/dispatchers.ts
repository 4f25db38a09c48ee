import { createSecureContext } from 'node:tls';
import {
  Agent,
  buildConnector,
  type Dispatcher,
  EnvHttpProxyAgent,
  ProxyAgent,
  Socks5ProxyAgent,
} from 'undici';
import { PeerTrust } from '../tls/peer-trust.ts';
import type { Credentials, ProxySetting } from './credentials/identity.ts';
import type { ResponseHeaders } from './transport.ts';

/**
 * Use of a connection pool: requests share a few connections and their answers are read whole; each watch has its own.
 */
type PoolUse = 'requests' | 'watches';

/** A request as {@link HttpRequests} take it. */
export interface HttpRequest {
  readonly origin: string;
  /** With the query. */
  readonly path: string;
  readonly method: Dispatcher.HttpMethod;
  readonly headers: Record<string, string>;
  readonly body: string | null;
  readonly signal: AbortSignal;
  readonly reset: boolean;
  readonly headersTimeout: number;
  readonly bodyTimeout: number;
}

/** An answer, whose body is taken once. */
export interface HttpAnswer {
  readonly statusCode: number;
  readonly headers: ResponseHeaders;
  readonly body: AsyncIterable<unknown> & {
    arrayBuffer(): Promise<ArrayBuffer>;
    dump(): Promise<unknown>;
  };
}

/** What sends requests: undici's pools of connections, or a port to another thread. */
export interface HttpRequests {
  request(request: HttpRequest): Promise<HttpAnswer>;
  /** Ends requests that are running. */
  destroy(): Promise<void>;
}

/** Creates connection pools. */
export type DispatcherFactory = (tls: Credentials['tls'], use: PoolUse) => HttpRequests;

/** Connections shared by requests, unless the source sets a number. */
export const sharedConnections = 32;
/** Limit of one answer in bytes: a page of a list has a few MB, a list without paging a few hundred. */
const largestAnswer = 512 * 1024 * 1024;
/** client-go: 30 s to connect and 10 s for the TLS handshake. */
const connectTimeoutMs = 40_000;
/** undici's value for no limit: the bytes of a watch are limited per event (`watch-decoder.ts`). */
const unlimited = -1;

/** How to reach a server: directly or through a proxy. `connections`: how many all requests share. */
export function dispatchers(
  proxy: ProxySetting | undefined,
  connections = sharedConnections,
): DispatcherFactory {
  if (proxy === undefined) return (tls, use) => direct(tls, use, connections);
  return (tls, use) => {
    const { connect: requestTls, ...pool } = settings(tls, use, connections);
    if (proxy.kind === 'environment')
      return new EnvHttpProxyAgent({ ...pool, connect: requestTls, requestTls });
    if (proxy.uri.startsWith('socks')) return new Socks5ProxyAgent(proxy.uri, { ...pool, requestTls });
    return new ProxyAgent({ ...pool, connect: requestTls, uri: proxy.uri, requestTls });
  };
}

/** How to reach a server at a Unix socket, without TLS. */
export function socketDispatchers(socketPath: string, connections = sharedConnections): DispatcherFactory {
  const connect = buildConnector({ socketPath, timeout: connectTimeoutMs });
  return (_, use) =>
    new Agent({
      ...poolSettings(use, connections),
      // By the protocol of the URL, undici would begin with TLS.
      connect: (options, callback) => connect({ ...options, protocol: 'http:' }, callback),
    });
}

/** Connections without a proxy trust as Go does, whatever the names of the certificates are. */
function direct(tls: Credentials['tls'], use: PoolUse, shared: number): Dispatcher {
  const { connect, ...pool } = settings(tls, use, shared);
  if (tls.rejectUnauthorized === false) return new Agent({ ...pool, connect });
  const trust = trustOf(tls);
  const verified = trust.connector(
    buildConnector({ ...connect, ...trust.options, ...{ allowH2: false, maxCachedSessions: 0 } }),
    Date.now,
  );
  const { servername } = tls;
  return new Agent({
    ...pool,
    connect: (options, callback) =>
      verified(servername === undefined ? options : { ...options, servername }, callback),
  });
}

/** @throws {Error} where a bundle has no certificate. */
function trustOf({ ca }: Credentials['tls']): PeerTrust {
  return new PeerTrust([ca ?? []].flat().map(String).join('\n'));
}

function settings(tls: Credentials['tls'], use: PoolUse, shared: number) {
  const verified = tls.rejectUnauthorized === false ? tls : { ...tls, ...trustOf(tls).strictOptions };
  // One secure context for all connections: each would parse the certificates again and keep 20 KiB of them.
  const secureContext = createSecureContext(verified);
  const connect = {
    ...verified,
    secureContext,
    timeout: connectTimeoutMs,
    keepAlive: true,
    // 30 s: below the idle limits of cloud load balancers, as client-go's dialer.
    keepAliveInitialDelay: 30_000,
  };
  return { connect, ...poolSettings(use, shared) };
}

function poolSettings(use: PoolUse, shared: number) {
  const isShared = use === 'requests';
  return {
    connections: isShared ? shared : null,
    pipelining: 1,
    // Watches that share a connection would hold each other up, and undici's sessions end with errors that have no listener.
    allowH2: false,
    maxResponseSize: isShared ? largestAnswer : unlimited,
  };
}
