import type { NodeConfigSource } from '../../../objects/core.generated.ts';
import { pushAll } from '../../../objects/lists.ts';
import { type FieldError, forbiddenField, invalid, required } from '../../validation/field-errors.ts';
import { isConfigMapKey, nameIsDNSLabel, nameIsDNSSubdomain } from '../../../objects/names.ts';

/** The rules of the source; the feature was removed, its rules remain (`validateNodeConfigSourceSpec`). */
export function validateConfigSource({ configMap }: NodeConfigSource): FieldError[] {
  const path = 'spec.configSource';
  // As kube-apiserver prints its own type.
  if (configMap === undefined) {
    return [invalid(path, { ConfigMap: null }, 'exactly one reference subfield must be non-nil')];
  }
  const { namespace, name, uid = '', resourceVersion = '', kubeletConfigKey } = configMap;
  const errors: FieldError[] = [];
  const refuse = (member: string) =>
    errors.push(forbiddenField(`${path}.configMap.${member}`, `${member} must not be set in spec`));
  if (uid !== '') refuse('uid');
  if (resourceVersion !== '') refuse('resourceVersion');
  const check = (member: string, value: string, rule: (value: string) => string[]) => {
    const at = `${path}.configMap.${member}`;
    if (value === '') errors.push(required(at));
    else
      pushAll(
        errors,
        rule(value).map((message) => invalid(at, value, message)),
      );
  };
  check('namespace', namespace, (value) => nameIsDNSLabel(value, false));
  check('name', name, (value) => nameIsDNSSubdomain(value, false));
  check('kubeletConfigKey', kubeletConfigKey, isConfigMapKey);
  return errors;
}
