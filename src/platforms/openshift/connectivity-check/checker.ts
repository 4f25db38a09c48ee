import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { connect as tcpConnect, isIP, type Socket } from 'node:net';
import type { Clock } from '../../../client/clock.ts';
import { type CheckResult, hostAndPort, statusAfter } from './status.ts';
import { joinHostPort } from '../../../objects/address.ts';
import { errorMessage } from '../../../objects/status.ts';
import { isNotFound } from '../../../client/errors.ts';
import { connectivityChecks, pods as podsResource } from '../../../client/resources.ts';
import { joinKey, keyOf, type ObjectKey } from '../../../objects/meta.ts';
import type { Pod } from '../../../objects/types/core.generated.ts';
import type { PodNetworkConnectivityCheck } from '../../../objects/types/openshift.ts';
import { type ControllerSpec, ownKey } from '../../../runtime/key-loop.ts';

/** A network that connections are opened from. */
export interface CheckNetwork {
  /** The addresses of a name. @throws the reason in Go's words. */
  lookUp(name: string, signal: AbortSignal): Promise<readonly string[]>;
  /** Opens a TCP connection. @throws the system's error, with its `code`. */
  connect(address: string, port: number, signal: AbortSignal): Promise<Socket>;
}

/** The network of this process. */
const processNetwork: CheckNetwork = {
  lookUp: async (name) => (await lookup(name, { all: true })).map(({ address }) => address),
  connect: async (host, port, signal) => {
    const socket = tcpConnect({ host, port });
    // Also behind its connection: without a listener an error ends the process.
    socket.on('error', () => socket.destroy());
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
function withoutSimulated(network: CheckNetwork, isSimulated: (address: string) => boolean): CheckNetwork {
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
async function checkEndpoint(
  network: CheckNetwork,
  endpoint: string,
  timeoutMs: number,
  clock: Clock,
): Promise<CheckResult> {
  const { host, port } = hostAndPort(endpoint);
  const signal = AbortSignal.timeout(timeoutMs);
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

/** Options of {@link connectivityCheckerController}. */
export interface ConnectivityCheckerOptions {
  /** The network of a Pod; undefined where this process has no way into it. Default: into none. */
  readonly networkOf?: (pod: Pod) => Promise<CheckNetwork | undefined>;
  /** Addresses of a simulated cluster, which this process does not connect to. Default: none. */
  readonly isSimulated?: (address: string) => boolean;
  /** Milliseconds between the checks of an endpoint; default a minute. */
  readonly periodMs?: number;
  /** Milliseconds that a connection may take; default ten seconds. */
  readonly timeoutMs?: number;
}

/**
 * Makes the checks that PodNetworkConnectivityChecks ask for, each once a minute while its source Pod runs
 * (cluster-network-operator `pkg/cmd/checkendpoints`). Each result is written at once; the real checker gathers some.
 * A TLS handshake that the real one makes after the connection decides nothing, and is left out.
 */
export function connectivityCheckerController({
  networkOf,
  isSimulated = () => false,
  periodMs = 60_000,
  timeoutMs = 10_000,
}: ConnectivityCheckerOptions = {}): ControllerSpec {
  return {
    name: 'check-endpoints-controller',
    eventSource: 'check-endpoints',
    queue: 'check_endpoints',
    // Checks wait for most of their time.
    workers: 50,
    where: { serves: connectivityChecks, work: 'connectivity checks' },
    build(loop) {
      const { clients, clock, events } = loop.context;
      const client = clients.for(connectivityChecks);
      const checks = loop.cache(connectivityChecks);
      const pods = loop.cache(podsResource);

      const ownNetwork = withoutSimulated(processNetwork, isSimulated);
      /** When an endpoint may be checked again, in monotonic milliseconds. */
      const nextMs = new Map<ObjectKey, number>();

      loop.on(checks, (change) => {
        const { object } = change;
        if (change.kind === 'updated') {
          if (object.spec.targetEndpoint !== change.old.spec.targetEndpoint) nextMs.delete(keyOf(object));
          if (object.metadata.generation === change.old.metadata.generation) return [];
        }
        return ownKey(change);
      });
      loop.on(pods, (change) => {
        const { object: pod } = change;
        if (change.kind === 'updated' && pod.status.phase === change.old.status.phase) return [];
        const { namespace, name } = pod.metadata;
        return [...checks.cache.values()]
          .filter(({ metadata, spec }) => metadata.namespace === namespace && spec.sourcePod === name)
          .map(keyOf);
      });

      const check = async (
        object: PodNetworkConnectivityCheck,
        pod: Pod,
        signal: AbortSignal,
      ): Promise<void> => {
        const { namespace = '', name = '', uid } = object.metadata;
        const { targetEndpoint } = object.spec;
        const network = await networkOf?.(pod);
        const result = await checkEndpoint(network ?? ownNetwork, targetEndpoint, timeoutMs, clock);
        const source = network === undefined ? 'Process' : 'PodNetwork';
        // The newest status: the cache may lag behind the last write.
        const present = await client.get(namespace, name, { signal });
        if (present.metadata.uid !== uid) return;
        const after = statusAfter(
          { name, targetEndpoint },
          present.status ?? {},
          result,
          source,
          clock.now(),
        );
        await client.replaceStatus({ ...present, status: after.status }, { signal });
        if (after.event !== undefined) {
          events.event(present, after.event.type, after.event.reason, after.event.message);
        }
      };

      return async (key, signal) => {
        const object = checks.cache.get(key);
        if (object === undefined) {
          nextMs.delete(key);
          return undefined;
        }
        const pod = pods.cache.get(joinKey(object.metadata.namespace ?? '', object.spec.sourcePod));
        // The real checker is a process of the Pod: without that, nothing is checked.
        if (pod === undefined || pod.status.phase !== 'Running' || object.spec.targetEndpoint === '') {
          nextMs.delete(key);
          return undefined;
        }
        const nowMs = clock.monotonic();
        const dueMs = nextMs.get(key) ?? nowMs;
        if (dueMs > nowMs) return { requeueAfterMs: dueMs - nowMs };
        nextMs.set(key, nowMs + periodMs);
        try {
          await check(object, pod, signal);
        } catch (error) {
          if (!isNotFound(error)) throw error;
        }
        return { requeueAfterMs: Math.max(0, nowMs + periodMs - clock.monotonic()) };
      };
    },
  };
}
