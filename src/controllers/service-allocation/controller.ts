import type { ServiceCidr } from '../../allocation/address-range.ts';
import type { PortRange } from '../../allocation/port-allocator.ts';
import type { Clock } from '../../client/clock.ts';
import { errorWord, isNotFound, isUnreached } from '../../client/errors.ts';
import { services } from '../../client/resources.ts';
import type { Transport } from '../../client/transport.ts';
import { at, listAt } from '../../objects/json.ts';
import { LogThrottle } from '../../telemetry/log.ts';
import type { ControllerDefinition, Runnable } from '../../runtime/context.ts';
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

/** Allocates addresses and node ports of Services, or audits an API server that does. */
export function serviceAllocationController(options: ServiceAllocationOptions): ControllerDefinition {
  return {
    name: 'service-allocation-controller',
    start(context): readonly Runnable[] {
      // First, so that a standby fills this cache too: it is the largest.
      context.informers.informer(services);
      const throttle = new LogThrottle(() => context.clock.monotonic());
      const failed = (error: unknown): void => {
        if (isUnreached(error) || !throttle.isDue(errorWord(error))) return;
        context.log.warn({ err: error }, 'could not ask the API server for its kinds, will retry');
      };
      return [
        {
          async run(signal) {
            const served = await readServedKinds(options.transport, context.clock, signal, failed);
            if (served === undefined) return;
            if (!served.cidrs && options.serviceCidrs === undefined) {
              context.log.error(
                'the API server has no ServiceCIDRs: set the ranges with --service-cluster-ip-range',
              );
            }
            const reconciler =
              options.allocation === 'controller'
                ? new AllocationReconciler(context, options, served)
                : new AuditReconciler(context, options, served);
            await reconciler.controller.run(signal);
          },
        },
      ];
    },
  };
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
