import type {
  IngressClass,
  IngressClassParametersReference,
} from '../../objects/types/networking.generated.ts';
import { domainPrefixedPathErrors } from '../validation/names.ts';
import {
  declarative,
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
  tooLong,
} from '../validation/field-errors.ts';
import { genericStrategy, isSpecChanged } from '../generic/generic.ts';
import { validateImmutableField } from '../generic/metadata.ts';
import {
  isDNS1123Subdomain,
  nameIsDNSLabel,
  nameIsDNSSubdomain,
  nameIsPathSegment,
} from '../../objects/names.ts';

const maxController = 250;
const scopes = ['Cluster', 'Namespace'];

/** The rules of IngressClasses (`apis/networking/validation` ValidateIngressClass). */
export const ingressClassStrategy = genericStrategy<IngressClass>({
  namespaced: false,
  nameRule: nameIsDNSSubdomain,
  generationChanges: isSpecChanged,
  repeatsCreate: 'after',
  setDefaults(ingressClass: Partial<Pick<IngressClass, 'spec'>>) {
    const { parameters } = (ingressClass.spec ??= {});
    if (parameters !== undefined && (parameters.scope ?? '') === '') parameters.scope = 'Cluster';
  },
  validateCreate: ({ spec }) => [
    ...validateController(spec.controller ?? ''),
    ...(spec.parameters === undefined ? [] : validateParameters(spec.parameters)),
  ],
  validateUpdate: ({ spec }, old) =>
    validateImmutableField(spec.controller ?? '', old.spec.controller ?? '', 'spec.controller'),
});

function validateController(controller: string): FieldError[] {
  const at = 'spec.controller';
  return [
    ...(Buffer.byteLength(controller) > maxController ? [tooLong(at, maxController)] : []),
    ...domainPrefixedPathErrors(at, controller),
  ];
}

function validateParameters({
  apiGroup,
  kind,
  name,
  scope,
  namespace,
}: IngressClassParametersReference): FieldError[] {
  const path = 'spec.parameters';
  const errors: FieldError[] = [];
  if (typeof apiGroup === 'string') {
    for (const message of isDNS1123Subdomain(apiGroup))
      errors.push(invalid(`${path}.apiGroup`, apiGroup, message));
  }
  const segment = (member: string, value: string) => {
    if (value === '') errors.push(declarative(required(`${path}.${member}`)));
    for (const message of nameIsPathSegment(value, false))
      errors.push(invalid(`${path}.${member}`, value, message));
  };
  segment('kind', kind);
  segment('name', name);
  if (!scopes.includes(scope ?? '')) {
    errors.push(notSupported(`${path}.scope`, scope ?? '', scopes));
  } else if (scope === 'Cluster') {
    if (namespace !== undefined) {
      errors.push(forbiddenField(`${path}.namespace`, "`parameters.scope` is set to 'Cluster'"));
    }
  } else if (namespace === undefined) {
    errors.push(required(`${path}.namespace`, "`parameters.scope` is set to 'Namespace'"));
  } else {
    for (const message of nameIsDNSLabel(namespace, false)) {
      errors.push(invalid(`${path}.namespace`, namespace, message));
    }
  }
  return errors;
}
