import { pushAll } from '../../../objects/lists.ts';
import type { Service } from '../../../objects/types/core.generated.ts';
import { forbiddenField, type FieldError } from '../../validation/field-errors.ts';
import { validateLegacyCidr } from '../../validation/network.ts';

/** CIDRs separated by commas: the predecessor of `spec.loadBalancerSourceRanges` (`core/v1/annotation_key_constants.go`). */
const sourceRanges = 'service.beta.kubernetes.io/load-balancer-source-ranges';

/** The capital L is kube-apiserver's. */
const path = 'spec.LoadBalancerSourceRanges';
const annotationPath = `metadata.annotations[${sourceRanges}]`;
const onlyLoadBalancer = "may only be used when `type` is 'LoadBalancer'";

/**
 * `loadBalancerSourceRanges`, or the annotation that it replaced when the field is empty. Values may be padded with
 * spaces; those of the stored Service are accepted in any spelling.
 */
export function validateSourceRanges(service: Service, old?: Service): FieldError[] {
  const errors: FieldError[] = [];
  const { spec } = service;
  const { loadBalancerSourceRanges: ranges = [] } = spec;
  if (ranges.length > 0) {
    if (spec.type !== 'LoadBalancer') errors.push(forbiddenField(path, onlyLoadBalancer));
    const exempt = old?.spec.loadBalancerSourceRanges?.map((value) => value.trim());
    ranges.forEach((value, i) => {
      pushAll(errors, validateLegacyCidr(value.trim(), `${path}[${i}]`, exempt));
    });
    return errors;
  }
  const annotation = annotationOf(service);
  if (annotation === undefined) return errors;
  if (spec.type !== 'LoadBalancer') errors.push(forbiddenField(annotationPath, onlyLoadBalancer));
  if (annotation.trim() === '' || (old !== undefined && annotationOf(old) === annotation)) return errors;
  for (const value of annotation.trim().split(',')) {
    pushAll(errors, validateLegacyCidr(value.trim(), annotationPath));
  }
  return errors;
}

function annotationOf({ metadata: { annotations } }: Service): string | undefined {
  return annotations !== undefined && Object.hasOwn(annotations, sourceRanges)
    ? annotations[sourceRanges]
    : undefined;
}
