import { pushAll } from '../../objects/lists.ts';
import { isQualifiedName, nameIsDNSSubdomain } from '../../objects/names.ts';
import type { DeviceClass, DeviceClassSpec } from '../../objects/types/resource.generated.ts';
import { genericStrategy, isSpecChanged } from '../generic/generic.ts';
import type { Strategy } from '../generic/strategy.ts';
import { declarative, type FieldError, invalid } from '../validation/field-errors.ts';
import { isExtendedResource } from '../validation/names.ts';
import { isSame, validateList } from './checks.ts';
import { compileSelectors, validateSelectors } from './device-expressions.ts';
import { maxConfig, validateConfiguration } from './device-claim.ts';

const rules = genericStrategy<DeviceClass>({
  namespaced: false,
  nameRule: nameIsDNSSubdomain,
  generationChanges: isSpecChanged,
  setDefaults(deviceClass: Partial<Pick<DeviceClass, 'spec'>>) {
    deviceClass.spec ??= {};
  },
  validateCreate: (deviceClass) => validateSpec(deviceClass, undefined),
  validateUpdate: (deviceClass, { spec }) => validateSpec(deviceClass, spec),
});

/** The rules of DeviceClasses (`apis/resource/validation` ValidateDeviceClass). */
export const deviceClassStrategy: Strategy<DeviceClass> = {
  ...rules,
  prepareValidation: (deviceClass) => compileSelectors(deviceClass, deviceClass.spec.selectors ?? []),
};

function validateSpec(deviceClass: DeviceClass, old: DeviceClassSpec | undefined): FieldError[] {
  const { selectors, config, extendedResourceName: extended } = deviceClass.spec;
  const isStored = old !== undefined && isSame(selectors, old.selectors);
  const isConfigStored = old !== undefined && isSame(config, old.config);
  const errors = [
    ...validateSelectors(selectors, 'spec.selectors', deviceClass, isStored),
    ...validateList(config, maxConfig, 'spec.config', (item, path) =>
      validateConfiguration(item, path, isConfigStored),
    ),
  ];
  if (extended !== undefined && !isExtendedResource(extended)) {
    pushAll(errors, extendedNameErrors(extended).map(declarative));
  }
  return errors;
}

/** The declared rule's words (`api/validate/strfmt.go` ExtendedResourceName). */
function extendedNameErrors(name: string): FieldError[] {
  const path = 'spec.extendedResourceName';
  const errors: FieldError[] = [];
  if (!name.includes('/')) {
    errors.push(invalid(path, name, "a name must be a domain-prefixed path, such as 'example.com/my-prop'"));
  } else if (name.includes('kubernetes.io/')) {
    errors.push(invalid(path, name, 'must not have "kubernetes.io/" domain'));
  }
  if (name.startsWith('requests.')) errors.push(invalid(path, name, 'must not have "requests." prefix'));
  for (const fault of isQualifiedName(`requests.${name}`)) errors.push(invalid(path, name, fault));
  return errors;
}
