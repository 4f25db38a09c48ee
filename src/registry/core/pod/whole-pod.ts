import type { Pod } from '../../../objects/types/core.generated.ts';
import { type FieldError, forbiddenField, invalid } from '../../validation/field-errors.ts';
import { validateObjectMeta } from '../../generic/metadata.ts';
import { nameIsDNSSubdomain } from '../../../objects/names.ts';
import { validatePodAnnotations } from './annotations.ts';

import { validatePodSpec } from './validation.ts';

/** The rules of a whole Pod (`validatePodMetadataAndSpec`). */
export function validateMetadataAndSpec({ metadata, spec }: Pod): FieldError[] {
  return [
    ...validateObjectMeta(metadata, { namespaced: true, nameRule: nameIsDNSSubdomain }),
    ...validatePodAnnotations(metadata.annotations, spec, 'metadata.annotations'),
    ...validatePodSpec(spec, 'spec', true),
    ...validatePodOnly(spec),
  ];
}

/**
 * The rules of Pods but not of templates, which have always been accepted without them (`validatePodMetadataAndSpec`).
 */
export function validatePodOnly(spec: Pod['spec']): FieldError[] {
  const errors: FieldError[] = [];
  if ((spec.serviceAccountName ?? '') === '') {
    (spec.volumes ?? []).forEach(({ projected }, i) =>
      (projected?.sources ?? []).forEach(({ serviceAccountToken }, j) => {
        if (serviceAccountToken === undefined) return;
        const at = `spec.volumes[${i}].projected.sources[${j}].serviceAccountToken`;
        errors.push(forbiddenField(at, 'must not be specified when serviceAccountName is not set'));
      }),
    );
  }
  for (const list of ['containers', 'initContainers'] as const) {
    (spec[list] ?? []).forEach(({ image = '' }, i) => {
      if (image.trim() === image) return;
      const detail = 'must not have leading or trailing whitespace';
      errors.push(invalid(`spec.${list}[${i}].image`, image, detail));
    });
  }
  return errors;
}
