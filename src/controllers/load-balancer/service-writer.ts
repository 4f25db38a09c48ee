import type { ResourceClient } from '../../client/resource-client.ts';
import type { Service } from '../../objects/core.generated.ts';
import { cleanupFinalizer, type ServicePlan } from './plan.ts';

/**
 * Carries a plan out, in one write: no address is ever seen without the finalizer, nor a finalizer that no condition
 * explains. As in `k8s.io/cloud-provider/service/helpers` (PatchService) the finalizer goes through the status
 * subresource, which takes metadata too. Fails with a conflict when somebody else wrote in between.
 *
 * @returns the Service as it is now, or undefined when nothing had to be written.
 */
export async function writeService(
  client: ResourceClient<Service>,
  service: Service,
  { finalizer, status }: ServicePlan,
  signal: AbortSignal,
): Promise<Service | undefined> {
  if (finalizer === undefined && status === undefined) return undefined;
  const { namespace = '', name = '', resourceVersion, finalizers = [] } = service.metadata;
  const others = finalizers.filter((one) => one !== cleanupFinalizer);
  const wanted = finalizer === 'add' ? [...others, cleanupFinalizer] : others.length > 0 ? others : null;
  const patch = {
    metadata: { resourceVersion, ...(finalizer === undefined ? {} : { finalizers: wanted }) },
    ...(status === undefined
      ? {}
      : {
          status: {
            loadBalancer: { ingress: status.loadBalancer?.ingress ?? null },
            conditions: status.conditions ?? null,
          },
        }),
  };
  return client.mergePatch(namespace, name, patch, { signal, subresource: 'status' });
}
