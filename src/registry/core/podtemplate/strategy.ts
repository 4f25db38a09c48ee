import { jsonEqual } from '../../../objects/json.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { genericStrategy } from '../../generic/generic.ts';
import { nameIsDNSSubdomain } from '../../../objects/names.ts';
import { setTemplateDefaults } from '../pod/defaults.ts';
import type { PodTemplateSpec } from '../pod/types.ts';
import { validatePodTemplate } from '../pod/validation.ts';

/** Core/v1 PodTemplate. */
interface PodTemplate extends KubeObject {
  template?: PodTemplateSpec;
}

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
