import type { APIService } from '../../objects/types/apiregistration.generated.ts';
import { goQuote } from '../../objects/formats/go-text.ts';
import { type FieldError, invalid, notSupported, required } from '../validation/field-errors.ts';
import { genericStrategy, resetMetaForStatus, addEmptyParts } from '../generic/generic.ts';
import { validateObjectMeta, validateObjectMetaUpdate } from '../generic/metadata.ts';
import { isDNS1035Label, isDNS1123Subdomain, nameIsPathSegment } from '../../objects/names.ts';
import type { Strategy } from '../generic/strategy.ts';

const httpsPort = 443;
const maxGroupPriority = 20_000;
const maxVersionPriority = 1000;
const conditionStatuses = ['True', 'False', 'Unknown'];

/** The condition of an APIService whose group version this server serves; that of others is the aggregator's to write. */
export const localAvailability = {
  type: 'Available',
  status: 'True',
  reason: 'Local',
  message: 'Local APIServices are always available',
} as const;

const rules = genericStrategy<APIService>({
  namespaced: false,
  nameRule: nameIsPathSegment,
  allowUnconditionalUpdate: false,
  hasStatus: true,
  statusResets: [['metadata']],
  prepareStatus: resetMetaForStatus,
  setDefaults(service) {
    addEmptyParts(service);
    if (service.spec.service !== undefined) service.spec.service.port ??= httpsPort;
  },
  prepareForCreate(service, { now }) {
    service.status =
      service.spec.service === undefined
        ? { conditions: [{ ...localAvailability, lastTransitionTime: now }] }
        : {};
  },
  validateStatus: ({ status }) =>
    (status.conditions ?? []).flatMap((condition, i) =>
      conditionStatuses.includes(condition.status)
        ? []
        : [notSupported(`status.conditions[${i}].status`, condition.status, conditionStatuses)],
    ),
});

/** The rules of APIServices (kube-aggregator `apiregistration/validation` ValidateAPIService). */
export const apiServiceStrategy: Strategy<APIService> = {
  ...rules,
  repeatsErrors: true,
  validateCreate: validate,
  validateUpdate: (service, old) => [
    ...validateObjectMetaUpdate(service.metadata, old.metadata),
    ...validate(service),
  ],
};

function validate({ metadata, spec }: APIService): FieldError[] {
  const { group = '', version = '', groupPriorityMinimum, versionPriority } = spec;
  const wanted = `${version}.${group}`;
  const nameRule = (name: string): string[] => {
    const faults = nameIsPathSegment(name, false);
    if (faults.length > 0 || name === wanted) return faults;
    return [`must be \`spec.version+"."+spec.group\`: ${goQuote(wanted)}`];
  };
  const errors = validateObjectMeta(metadata, { namespaced: false, nameRule });
  if (group === '' && version !== 'v1') {
    const detail = 'only v1 may have an empty group and it better be legacy kube';
    errors.push(required('spec.group', detail));
  }
  if (group !== '') {
    for (const message of isDNS1123Subdomain(group)) errors.push(invalid('spec.group', group, message));
  }
  for (const message of isDNS1035Label(version)) errors.push(invalid('spec.version', version, message));
  if (groupPriorityMinimum <= 0 || groupPriorityMinimum > maxGroupPriority) {
    const detail = `must be positive and less than ${maxGroupPriority}`;
    errors.push(invalid('spec.groupPriorityMinimum', groupPriorityMinimum, detail));
  }
  if (versionPriority <= 0 || versionPriority > maxVersionPriority) {
    const detail = `must be positive and less than ${maxVersionPriority}`;
    errors.push(invalid('spec.versionPriority', versionPriority, detail));
  }
  return [...errors, ...validateServer(spec)];
}

function validateServer({
  service,
  caBundle = '',
  insecureSkipTLSVerify = false,
}: APIService['spec']): FieldError[] {
  const errors: FieldError[] = [];
  const unchecked = 'spec.insecureSkipTLSVerify';
  if (service === undefined) {
    if (caBundle !== '') {
      const size = `${Buffer.from(caBundle, 'base64').length} bytes`;
      errors.push(invalid('spec.caBundle', size, 'local APIServices may not have a caBundle'));
    }
    if (insecureSkipTLSVerify) {
      errors.push(invalid(unchecked, true, 'local APIServices may not have insecureSkipTLSVerify'));
    }
    return errors;
  }
  if ((service.namespace ?? '') === '') errors.push(required('spec.service.namespace'));
  if ((service.name ?? '') === '') errors.push(required('spec.service.name'));
  if (insecureSkipTLSVerify && caBundle !== '') {
    errors.push(invalid(unchecked, true, 'may not be true if caBundle is present'));
  }
  return errors;
}
