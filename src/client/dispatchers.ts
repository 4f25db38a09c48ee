import { createSecureContext } from 'node:tls';
import { Agent, type Dispatcher, EnvHttpProxyAgent, ProxyAgent, Socks5ProxyAgent } from 'undici';
import type { Credentials, ProxySetting } from './identity.ts';

/** What a pool of connections is for: requests share a few, whose answers are read whole; each watch has its own. */
export type PoolUse = 'requests' | 'watches';

/** Makes pools of connections. */
export type DispatcherFactory = (tls: Credentials['tls'], use: PoolUse) => Dispatcher;

/** Connections that requests share. */
const sharedConnections = 32;
/** Bytes of one answer: a list page is some megabytes, a whole list of a server without paging some hundred. */
const largestAnswer = 512 * 1024 * 1024;
/** undici's word for no limit: what a watch reads is counted event by event (`watch-decoder.ts`). */
const unlimited = -1;

/** How to reach a server: directly, or by a proxy. */
export function dispatchers(proxy: ProxySetting | undefined): DispatcherFactory {
  if (proxy === undefined) return (tls, use) => new Agent(settings(tls, use));
  return (tls, use) => {
    const { connect: requestTls, ...pool } = settings(tls, use);
    if (proxy.kind === 'environment')
      return new EnvHttpProxyAgent({ ...pool, connect: requestTls, requestTls });
    if (proxy.uri.startsWith('socks')) return new Socks5ProxyAgent(proxy.uri, { ...pool, requestTls });
    return new ProxyAgent({ ...pool, connect: requestTls, uri: proxy.uri, requestTls });
  };
}

function settings(tls: Credentials['tls'], use: PoolUse) {
  // One for all connections: each would parse the certificates for itself and keep them, 20 KiB.
  const secureContext = createSecureContext(tls);
  // 30 s: below the idle limits of cloud load balancers, as client-go's dialer.
  const connect = { ...tls, secureContext, keepAlive: true, keepAliveInitialDelay: 30_000 };
  const isShared = use === 'requests';
  return {
    connect,
    connections: isShared ? sharedConnections : null,
    pipelining: 1,
    maxResponseSize: isShared ? largestAnswer : unlimited,
  };
}
