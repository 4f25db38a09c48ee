import type { ServiceCidr } from '../../allocation/address-range.ts';
import type { PortRange } from '../../allocation/port-allocator.ts';
import type { Clock } from '../../client/clock.ts';
import { errorWord, isNotFound, isUnreached } from '../../client/errors.ts';
import { services } from '../../client/resources.ts';
import type { Transport } from '../../client/transport.ts';
import { at, listAt } from '../../objects/json.ts';
import { LogThrottle } from '../../telemetry/log.ts';
import type { ControllerSpec, KeyLoop, Reconcile, SyncedSource } from '../../runtime/key-loop.ts';
import { AllocationReconciler } from './allocation-reconciler.ts';
import { AuditReconciler } from './audit-reconciler.ts';
import type { ServedKinds } from './allocation-state.ts';

/** Options of {@link serviceAllocationController}. */
export interface ServiceAllocationOptions {
  readonly transport: Transport;
  /** What allocates. If it is the API server, its allocations are audited. */
  readonly allocation: 'server' | 'controller';
  /** The CIDRs of a server without ServiceCIDRs, and the cluster's families, primary first. */
  readonly serviceCidrs?: readonly ServiceCidr[];
  readonly nodePorts: PortRange;
}

const common = {
  name: 'service-allocation-controller',
  eventSource: 'servicenet-service-allocation',
} as const;

/** Allocates addresses and node ports of Services, or audits an API server that does. */
export function serviceAllocationController(options: ServiceAllocationOptions): ControllerSpec {
  if (options.allocation === 'server') {
    return {
      ...common,
      queue: 'service_allocation_audit',
      workers: 1,
      build: (loop) => build(loop, options, (served) => new AuditReconciler(loop, options, served)),
    };
  }
  return {
    ...common,
    queue: 'service_allocation',
    workers: 16,
    backoff: { base: 5, max: 60_000 },
    build: (loop) => build(loop, options, (served) => new AllocationReconciler(loop, options, served)),
  };
}

/** What works on the kinds that the server serves. */
interface ServedReconciler {
  /** The caches of these kinds. */
  readonly sources: readonly SyncedSource[];
  readonly reconcile: Reconcile;
}

/** Makes the reconciler when the server has said which kinds it serves, before the first key. */
function build(
  loop: KeyLoop,
  { transport, serviceCidrs }: ServiceAllocationOptions,
  make: (served: ServedKinds) => ServedReconciler,
): Reconcile {
  const { clock, log } = loop.context;
  // Now, so that a standby fills this cache too: it is the largest.
  loop.cache(services);

  let reconciler: ServedReconciler | undefined;
  const throttle = new LogThrottle(() => clock.monotonic());
  const failed = (error: unknown): void => {
    if (isUnreached(error) || !throttle.isDue(errorWord(error))) return;
    log.warn({ err: error }, 'could not ask the API server for its kinds, will retry');
  };

  loop.waitFor({
    async synced(signal) {
      const served = await readServedKinds(transport, clock, signal, failed);
      if (served === undefined) return false;
      if (!served.cidrs && serviceCidrs === undefined) {
        log.error('the API server has no ServiceCIDRs: set the ranges with --service-cluster-ip-range');
      }
      reconciler = make(served);
      const synced = await Promise.all(reconciler.sources.map((source) => source.synced(signal)));
      return synced.every(Boolean);
    },
  });

  return async (key, signal) => await reconciler?.reconcile(key, signal);
}

/** Milliseconds between tries. */
const retryDelayMs = 2000;

/** Reads the discovery of the server, with retries; undefined if the signal aborts first. */
async function readServedKinds(
  transport: Transport,
  clock: Clock,
  signal: AbortSignal,
  failed: (error: unknown) => void,
): Promise<ServedKinds | undefined> {
  while (!signal.aborted) {
    try {
      const list = (await transport.request('GET', '/apis/networking.k8s.io/v1', { signal })).json();
      const names = new Set(listAt(list, 'resources').map((resource) => at(resource, 'name')));
      return { addresses: names.has('ipaddresses'), cidrs: names.has('servicecidrs') };
    } catch (error) {
      if (isNotFound(error)) return { addresses: false, cidrs: false };
      failed(error);
      await clock.sleep(retryDelayMs, signal);
    }
  }
  return undefined;
}
