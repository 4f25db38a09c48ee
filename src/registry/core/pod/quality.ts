import type { PodSpec, ResourceRequirements } from '../../../objects/types/core.generated.ts';
import { parseQuantity } from '../../../objects/quantity.ts';

/** The resources that decide. */
const counted = ['cpu', 'memory'];

/** The QoS class (`ComputePodQOS`): by the Pod's own resources if it has them, else by its containers. */
export function qosClass(spec: PodSpec): 'Guaranteed' | 'Burstable' | 'BestEffort' {
  const parts =
    spec.resources === undefined
      ? [...(spec.containers ?? []), ...(spec.initContainers ?? [])].map(({ resources = {} }) => resources)
      : [spec.resources];
  const amounts = parts.flatMap(({ limits, requests }) =>
    counted.flatMap((resource) => [amount(limits, resource), amount(requests, resource)]),
  );
  if (amounts.every((nanos) => nanos <= 0n)) return 'BestEffort';
  return parts.every(isGuaranteed) ? 'Guaranteed' : 'Burstable';
}

/** True for limits of both resources, and requests that equal them. */
function isGuaranteed({ limits, requests }: ResourceRequirements): boolean {
  return counted.every((resource) => {
    const limit = amount(limits, resource);
    return limit > 0n && amount(requests, resource) === limit;
  });
}

function amount(list: Record<string, string> | undefined, resource: string): bigint {
  const text = list !== undefined && Object.hasOwn(list, resource) ? list[resource] : undefined;
  return text === undefined ? 0n : parseQuantity(text).nanos;
}
