import type { Service } from '../../objects/service.ts';
import type { Reservation, Strategy, StrategyContext } from '../strategy.ts';
import type { ServiceAllocators } from './allocators.ts';
import { allocateClusterIPs, releaseClusterIPs, updateClusterIPs } from './cluster-ip-allocation.ts';
import { decorateService } from './decorate.ts';
import { setServiceDefaults } from './defaults.ts';
import { dropTypeDependentFields } from './drop.ts';
import { initIPFamilies } from './families.ts';
import { allocateNodePorts, releaseNodePorts, updateNodePorts } from './node-port-allocation.ts';
import { normalizeClusterIPs, normalizeNewClusterIPs, refillAllocatedValues } from './refill.ts';
import { ServiceReservation } from './reservation.ts';
import { validateServiceStatusUpdate } from './status-rules.ts';
import { validateService, validateServiceUpdate } from './validation.ts';
import { warningsForService, warningsForServiceStatus } from './warnings.ts';

/** What kube-apiserver decides about Services (`pkg/registry/core/service`). */
export function createServiceStrategy(allocators: ServiceAllocators): Strategy<Service> {
  const [primary] = allocators.families;
  return {
    allowCreateOnUpdate: true,
    allowUnconditionalUpdate: true,
    deleteReturnsObject: true,
    setDefaults: setServiceDefaults,

    beginCreate(service, context) {
      return reserve(allocators, context, (reservation) => {
        normalizeNewClusterIPs(service.spec);
        initIPFamilies(service, undefined, allocators.families);
        allocateClusterIPs(service, reservation);
        allocateNodePorts(service, reservation);
      });
    },
    beginUpdate(service, stored, context) {
      const old = decorateService(stored, primary);
      return reserve(allocators, context, (reservation) => {
        refillAllocatedValues(service.spec, old.spec);
        normalizeClusterIPs(service.spec, old.spec);
        initIPFamilies(service, old, allocators.families);
        updateClusterIPs(service, old.spec, reservation);
        updateNodePorts(service, old.spec, reservation);
      });
    },
    beginDelete(stored, context) {
      const { spec, metadata } = decorateService(stored, primary);
      return reserve(allocators, context, (reservation) => {
        releaseClusterIPs(spec, reservation);
        releaseNodePorts(spec, reservation);
        if (context.dryRun) return;
        const { namespace = '', name = '' } = metadata;
        reservation.deletes.push({ group: '', plural: 'endpoints', namespace, name });
      });
    },

    prepareForCreate(service) {
      service.status = { loadBalancer: {} };
    },
    prepareForUpdate(service, old) {
      service.status = old.status;
      dropTypeDependentFields(service, decorateService(old, primary));
    },
    validateCreate: validateService,
    validateUpdate: (service, old) => validateServiceUpdate(service, decorateService(old, primary)),
    warningsOnCreate: warningsForService,
    warningsOnUpdate: warningsForService,
    decorate: (service) => decorateService(service, primary),
    fields: ({ spec = {} }: Partial<Pick<Service, 'spec'>>) => ({
      'spec.clusterIP': spec.clusterIP ?? '',
      'spec.type': spec.type ?? '',
    }),

    status: {
      prepareForUpdate(service, old) {
        service.spec = old.spec;
      },
      validateUpdate: validateServiceStatusUpdate,
      warningsOnUpdate: warningsForServiceStatus,
    },
  };
}

/** Runs the steps of one request; what they took is given back when one of them throws. */
function reserve(
  allocators: ServiceAllocators,
  context: StrategyContext,
  take: (reservation: ServiceReservation) => void,
): Reservation {
  const reservation = new ServiceReservation(allocators, context);
  try {
    take(reservation);
  } catch (error) {
    reservation.rollback();
    throw error;
  }
  return reservation;
}
