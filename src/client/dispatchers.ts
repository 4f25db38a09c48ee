import { createSecureContext } from 'node:tls';
import { Agent, type Dispatcher, EnvHttpProxyAgent, ProxyAgent, Socks5ProxyAgent } from 'undici';
import type { Credentials, ProxySetting } from './credentials/identity.ts';

/**
 * Use of a connection pool: requests share a few connections and their answers are read whole; each watch has its own.
 */
export type PoolUse = 'requests' | 'watches';

/** Creates connection pools. */
export type DispatcherFactory = (tls: Credentials['tls'], use: PoolUse) => Dispatcher;

/** Connections shared by requests, unless the source sets a number. */
const sharedConnections = 32;
/** Limit of one answer in bytes: a page of a list has a few MB, a list without paging a few hundred. */
const largestAnswer = 512 * 1024 * 1024;
/** undici's value for no limit: the bytes of a watch are limited per event (`watch-decoder.ts`). */
const unlimited = -1;

/** How to reach a server: directly or through a proxy. `connections`: how many all requests share. */
export function dispatchers(
  proxy: ProxySetting | undefined,
  connections = sharedConnections,
): DispatcherFactory {
  if (proxy === undefined) return (tls, use) => new Agent(settings(tls, use, connections));
  return (tls, use) => {
    const { connect: requestTls, ...pool } = settings(tls, use, connections);
    if (proxy.kind === 'environment')
      return new EnvHttpProxyAgent({ ...pool, connect: requestTls, requestTls });
    if (proxy.uri.startsWith('socks')) return new Socks5ProxyAgent(proxy.uri, { ...pool, requestTls });
    return new ProxyAgent({ ...pool, connect: requestTls, uri: proxy.uri, requestTls });
  };
}

function settings(tls: Credentials['tls'], use: PoolUse, shared: number) {
  // One secure context for all connections: each would parse the certificates again and keep 20 KiB of them.
  const secureContext = createSecureContext(tls);
  const connect = {
    ...tls,
    secureContext,
    // client-go: 30 s to connect and 10 s for the TLS handshake.
    timeout: 40_000,
    keepAlive: true,
    // 30 s: below the idle limits of cloud load balancers, as client-go's dialer.
    keepAliveInitialDelay: 30_000,
  };
  const isShared = use === 'requests';
  return {
    connect,
    connections: isShared ? shared : null,
    pipelining: 1,
    maxResponseSize: isShared ? largestAnswer : unlimited,
  };
}
