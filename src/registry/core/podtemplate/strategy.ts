import type { PodTemplate } from '../../../objects/types/core.generated.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { genericStrategy } from '../../generic/generic.ts';
import { nameIsDNSSubdomain } from '../../../objects/names.ts';
import { setTemplateDefaults } from '../pod/defaults.ts';

import { validatePodTemplate } from '../pod/validation.ts';

/** The rules of PodTemplates (`pkg/registry/core/podtemplate/strategy.go`). */
export const podTemplateStrategy = genericStrategy<PodTemplate>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  deleteReturnsObject: true,
  generationChanges: (object, old) => !jsonEqual(object.template ?? {}, old.template ?? {}),
  setDefaults: (object) => setTemplateDefaults((object.template ??= {})),
  validateCreate: ({ template = {} }) => validatePodTemplate(template, 'template'),
  validateUpdate: ({ template = {} }) => validatePodTemplate(template, 'template'),
});
