import type { ServiceCidr } from '../../allocation/address-range.ts';
import type { PortRange } from '../../allocation/port-allocator.ts';
import { errorWord, isUnreached } from '../../client/errors.ts';
import { services } from '../../client/resources.ts';
import type { Transport } from '../../client/transport.ts';
import { LogThrottle } from '../../telemetry/log-throttle.ts';
import type { ControllerDefinition, Runnable } from '../../runtime/context.ts';
import { AllocationReconciler } from './allocation-reconciler.ts';
import { AuditReconciler } from './audit-reconciler.ts';
import { readServedKinds } from './served.ts';

/** Options of {@link serviceAllocationController}. */
export interface ServiceAllocationOptions {
  readonly transport: Transport;
  /** Who allocates: with `server` what it did is audited, with `controller` we do it. */
  readonly allocation: 'server' | 'controller';
  /** The ranges of Services where the server has no ServiceCIDRs, and the cluster's families, primary first. */
  readonly serviceCidrs?: readonly ServiceCidr[];
  readonly nodePorts: PortRange;
}

/** Gives Services their addresses and node ports, or watches over an API server that does. */
export function serviceAllocationController(options: ServiceAllocationOptions): ControllerDefinition {
  return {
    name: 'service-allocation-controller',
    start(context): readonly Runnable[] {
      // Before anything is asked: a standby keeps this cache, the largest one, filled.
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
            const work =
              options.allocation === 'controller'
                ? new AllocationReconciler(context, options, served)
                : new AuditReconciler(context, options, served);
            await work.controller.run(signal);
          },
        },
      ];
    },
  };
}
