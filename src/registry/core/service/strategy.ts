import type { Service } from '../../../objects/types/core.generated.ts';
import type { FieldError } from '../../validation/field-errors.ts';
import type { Reservation, Strategy, StrategyContext } from '../../generic/strategy.ts';
import type { ServiceAllocators } from './allocators.ts';
import { allocateClusterIPs, releaseClusterIPs, updateClusterIPs } from './allocation.ts';
import { defaultOnRead, isDecoratedService } from './normalize.ts';
import { setServiceDefaults } from './normalize.ts';
import { dropTypeDependentFields } from './normalize.ts';
import { type ClusterFamilies, initIPFamilies } from './families.ts';
import { allocateNodePorts, releaseNodePorts, updateNodePorts } from './allocation.ts';
import { normalizeClusterIPs, normalizeNewClusterIPs, patchAllocatedValues } from './normalize.ts';
import { ServiceReservation } from './reservation.ts';
import { validateServiceStatusUpdate } from './validation.ts';
import { validateService, validateServiceUpdate } from './validation.ts';
import { warningsForService, warningsForServiceStatus } from './validation.ts';

/** The strategy of Services (`pkg/registry/core/service`). */
export function createServiceStrategy(allocators: ServiceAllocators): Strategy<Service> {
  const [primary] = allocators.families;
  return {
    ...serviceRules((service) => defaultOnRead(service, primary)),

    beginCreate(service, context) {
      return reserve(allocators, context, (reservation) => {
        normalizeNewClusterIPs(service.spec);
        initIPFamilies(service, undefined, allocators.families);
        allocateClusterIPs(service, reservation);
        allocateNodePorts(service, reservation);
      });
    },
    beginUpdate(service, stored, context) {
      const old = defaultOnRead(stored, primary);
      return reserve(allocators, context, (reservation) => {
        patchAllocatedValues(service.spec, old.spec);
        normalizeClusterIPs(service.spec, old.spec);
        initIPFamilies(service, old, allocators.families);
        updateClusterIPs(service, old.spec, reservation);
        updateNodePorts(service, old.spec, reservation);
      });
    },
    beginDelete(stored, context) {
      const { spec } = defaultOnRead(stored, primary);
      return reserve(allocators, context, (reservation) => {
        releaseClusterIPs(spec, reservation);
        releaseNodePorts(spec, reservation);
      });
    },
  };
}

/**
 * The same without allocation: Services are stored as sent, and a controller sets addresses and node ports. Values
 * that an update leaves out are kept.
 */
export function createUnallocatedServiceStrategy([primary]: ClusterFamilies): Strategy<Service> {
  const rules = serviceRules((service) =>
    (service.spec.clusterIP ?? '') === '' ? service : defaultOnRead(service, primary),
  );
  return {
    ...rules,
    prepareForCreate(service, context) {
      normalizeNewClusterIPs(service.spec);
      rules.prepareForCreate(service, context);
    },
    prepareForUpdate(service, old, context) {
      patchAllocatedValues(service.spec, old.spec);
      normalizeClusterIPs(service.spec, old.spec);
      rules.prepareForUpdate(service, old, context);
    },
    validateCreate: (service, context) => withoutMissingPort(rules.validateCreate(service, context)),
    validateUpdate(service, old, context) {
      const errors = withoutMissingPort(rules.validateUpdate(service, old, context));
      if ((old.spec.healthCheckNodePort ?? 0) !== 0) return errors;
      return errors.filter(
        ({ field, reason }) => field !== healthCheckPath || reason !== 'FieldValueForbidden',
      );
    },
  };
}

const healthCheckPath = 'spec.healthCheckNodePort';

/** The health check node port is allocated later: it may be absent, and then be set. */
function withoutMissingPort(errors: FieldError[]): FieldError[] {
  return errors.filter(({ field, reason }) => field !== healthCheckPath || reason !== 'FieldValueRequired');
}

/** The part that does not depend on allocation. */
function serviceRules(decorate: (service: Service) => Service): Strategy<Service> {
  return {
    resetFields: [['status']],
    allowCreateOnUpdate: true,
    allowUnconditionalUpdate: true,
    deleteReturnsObject: true,
    setDefaults: setServiceDefaults,
    prepareForCreate(service) {
      service.status = { loadBalancer: {} };
    },
    prepareForUpdate(service, old) {
      service.status = old.status;
      dropTypeDependentFields(service, decorate(old));
    },
    validateCreate: validateService,
    validateUpdate: (service, old) => validateServiceUpdate(service, decorate(old)),
    warningsOnCreate: warningsForService,
    warningsOnUpdate: warningsForService,
    decorate,
    // Called for each Service of a list.
    isDecorated: (stored) => (stored.isDecorated ||= isDecoratedService(stored.text())),
    fields: ({ spec = {} }: Partial<Pick<Service, 'spec'>>) => ({
      'spec.clusterIP': spec.clusterIP ?? '',
      'spec.type': spec.type ?? '',
    }),

    status: {
      resetFields: [['spec']],
      prepareForUpdate(service, old) {
        service.spec = old.spec;
      },
      validateUpdate: validateServiceStatusUpdate,
      warningsOnUpdate: warningsForServiceStatus,
    },
  };
}

/** Runs the steps of one request; what they allocated is released when one of them throws. */
function reserve(
  allocators: ServiceAllocators,
  context: StrategyContext,
  allocate: (reservation: ServiceReservation) => void,
): Reservation {
  const reservation = new ServiceReservation(allocators, context);
  try {
    allocate(reservation);
  } catch (error) {
    reservation.rollback();
    throw error;
  }
  return reservation;
}
