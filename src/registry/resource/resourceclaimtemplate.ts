import { nameIsDNSSubdomain } from '../../objects/names.ts';
import type { ResourceClaimTemplate } from '../../objects/types/resource.generated.ts';
import { genericStrategy } from '../generic/generic.ts';
import { validateAnnotations, validateImmutableField } from '../generic/metadata.ts';
import type { Strategy } from '../generic/strategy.ts';
import { type FieldError, forbiddenField } from '../validation/field-errors.ts';
import { validateLabels } from '../validation/label-selector.ts';
import {
  adminRequestErrors,
  disabledClaimFeatures,
  emptyClaimSpec,
  selectorsOf,
  setClaimDefaults,
  validateClaimSpec,
} from './device-claim.ts';
import { compileSelectors } from './device-expressions.ts';

const rules = genericStrategy<ResourceClaimTemplate>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  disabled: disabledClaimFeatures('spec', 'spec'),
  setDefaults(template: Partial<Pick<ResourceClaimTemplate, 'spec'>>) {
    template.spec ??= { metadata: {}, spec: emptyClaimSpec() };
    setClaimDefaults(template.spec.spec);
  },
  validateCreate: validateSpec,
  repeatsCreate: 'before',
  validateUpdate: ({ spec }, old) => validateImmutableField(spec, old.spec, 'spec'),
});

/** The rules of ResourceClaimTemplates (`apis/resource/validation` ValidateResourceClaimTemplate). */
export const resourceClaimTemplateStrategy: Strategy<ResourceClaimTemplate> = {
  ...rules,
  prepareValidation: (template) => compileSelectors(template, selectorsOf(template.spec.spec)),
  validateCreate: (template, context) => [
    ...adminRequestErrors(template.spec.spec, template.metadata.namespace ?? '', context),
    ...rules.validateCreate(template, context),
  ],
};

/** The claims get labels and annotations of the template, and nothing else of its metadata. */
function validateSpec(template: ResourceClaimTemplate): FieldError[] {
  const { metadata, spec } = template.spec;
  const path = 'spec.metadata';
  const { labels, annotations, ...others } = metadata;
  return [
    ...validateAnnotations(annotations ?? {}, `${path}.annotations`),
    ...(labels === undefined ? [] : validateLabels(labels, `${path}.labels`)),
    ...Object.keys(others).map((member) => forbiddenField(`${path}.${member}`, 'cannot be set')),
    ...validateClaimSpec(spec, 'spec.spec', template),
  ];
}
