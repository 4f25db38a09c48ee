import type { ResourceClient } from '../../client/resource-client.ts';
import type { Service } from '../../objects/service.ts';
import { cleanupFinalizer, type ServicePlan } from './plan.ts';

/**
 * Carries a plan out: the finalizer before the first address is shown, and the status before the finalizer goes. Each
 * write fails with a conflict when somebody else wrote in between. Returns the Service as it is now, or undefined when
 * nothing had to be written.
 */
export async function writeService(
  client: ResourceClient<Service>,
  service: Service,
  plan: ServicePlan,
  signal: AbortSignal,
): Promise<Service | undefined> {
  const { namespace = '', name = '' } = service.metadata;
  let latest: Service | undefined;
  const version = (): string | undefined => (latest ?? service).metadata.resourceVersion;
  const finalizers = (service.metadata.finalizers ?? []).filter(
    (finalizer) => finalizer !== cleanupFinalizer,
  );
  if (plan.finalizer === 'add') {
    const metadata = { resourceVersion: version(), finalizers: [...finalizers, cleanupFinalizer] };
    latest = await client.mergePatch(namespace, name, { metadata }, { signal });
  }
  if (plan.status !== undefined) {
    const { loadBalancer, conditions } = plan.status;
    const status = {
      loadBalancer: { ingress: loadBalancer?.ingress ?? null },
      conditions: conditions ?? null,
    };
    const patch = { metadata: { resourceVersion: version() }, status };
    latest = await client.mergePatch(namespace, name, patch, { signal, subresource: 'status' });
  }
  if (plan.finalizer === 'remove') {
    const metadata = { resourceVersion: version(), finalizers: finalizers.length === 0 ? null : finalizers };
    latest = await client.mergePatch(namespace, name, { metadata }, { signal });
  }
  return latest;
}
