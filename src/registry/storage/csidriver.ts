import type { CSIDriver, CSIDriverSpec } from '../../objects/types/storage.generated.ts';
import { pushAll } from '../../objects/lists.ts';
import {
  duplicate,
  type FieldError,
  invalid,
  notSupported,
  required,
  tooLong,
} from '../validation/field-errors.ts';
import { genericStrategy, isSpecChanged } from '../generic/generic.ts';
import { validateImmutableField } from '../generic/metadata.ts';
import { isDNS1123Subdomain, nameIsDNSSubdomain } from '../../objects/names.ts';
import type { Strategy } from '../generic/strategy.ts';

const fsGroupPolicies = ['File', 'None', 'ReadWriteOnceWithFSType'];
const lifecycleModes = ['Persistent', 'Ephemeral'];
const minTokenSeconds = 600;
const maxTokenSeconds = 2 ** 32;
const minPeriodSeconds = 10;

const rules = genericStrategy<CSIDriver>({
  namespaced: false,
  nameRule: nameIsDNSSubdomain,
  deleteReturnsObject: true,
  allowUnconditionalUpdate: false,
  setDefaults(driver: Partial<Pick<CSIDriver, 'spec'>>) {
    const spec = (driver.spec ??= {});
    spec.attachRequired ??= true;
    spec.podInfoOnMount ??= false;
    spec.storageCapacity ??= false;
    spec.fsGroupPolicy ??= 'ReadWriteOnceWithFSType';
    if ((spec.volumeLifecycleModes ?? []).length === 0) spec.volumeLifecycleModes = ['Persistent'];
    spec.requiresRepublish ??= false;
    spec.seLinuxMount ??= false;
  },
  generationChanges: isSpecChanged,
  immutable: ['spec.volumeLifecycleModes'],
  validateCreate: ({ spec }) => validateSpec(spec),
  validateUpdate: ({ spec }, old) => [
    ...validateSpec(spec),
    // Spelled so in kube-apiserver.
    ...validateImmutableField(spec.attachRequired, old.spec.attachRequired, 'spec.attachedRequired'),
  ],
});

/** The rules of CSIDrivers (`apis/storage/validation` ValidateCSIDriver). */
export const csiDriverStrategy: Strategy<CSIDriver> = {
  ...rules,
  prepareForCreate(driver, context) {
    rules.prepareForCreate(driver, context);
    // The generation starts with the first change.
    delete driver.metadata.generation;
  },
};

/** Required fields have defaults. */
function validateSpec(spec: CSIDriverSpec): FieldError[] {
  const { fsGroupPolicy, nodeAllocatableUpdatePeriodSeconds: period } = spec;
  const errors: FieldError[] = [];
  if (spec.attachRequired === undefined) errors.push(required('spec.attachedRequired'));
  if (spec.podInfoOnMount === undefined) errors.push(required('spec.podInfoOnMount'));
  if (spec.storageCapacity === undefined) errors.push(required('spec.storageCapacity'));
  if (fsGroupPolicy !== undefined && !fsGroupPolicies.includes(fsGroupPolicy)) {
    errors.push(notSupported('spec.fsGroupPolicy', fsGroupPolicy, fsGroupPolicies));
  }
  pushAll(errors, validateTokenRequests(spec.tokenRequests ?? []));
  for (const mode of spec.volumeLifecycleModes ?? []) {
    if (!lifecycleModes.includes(mode)) {
      errors.push(notSupported('spec.volumeLifecycleModes', mode, lifecycleModes));
    }
  }
  if (spec.seLinuxMount === undefined) errors.push(required('spec.seLinuxMount'));
  if (period !== undefined && period < minPeriodSeconds) {
    const detail = `must be greater than or equal to ${minPeriodSeconds} seconds`;
    errors.push(invalid('spec.nodeAllocatableUpdatePeriodSeconds', period, detail));
  }
  return errors;
}

function validateTokenRequests(requests: NonNullable<CSIDriverSpec['tokenRequests']>): FieldError[] {
  const errors: FieldError[] = [];
  const audiences = new Set<string>();
  requests.forEach(({ audience, expirationSeconds: seconds }, i) => {
    const at = `spec.tokenRequests[${i}]`;
    if (audiences.has(audience)) {
      errors.push(duplicate(`${at}.audience`, audience));
      return;
    }
    audiences.add(audience);
    if (seconds === undefined) return;
    const wrong = (detail: string) => errors.push(invalid(`${at}.expirationSeconds`, seconds, detail));
    if (seconds < minTokenSeconds) wrong('may not specify a duration less than 10 minutes');
    if (seconds > maxTokenSeconds) wrong('may not specify a duration larger than 2^32 seconds');
  });
  return errors;
}

const maxDriverName = 63;

/** The name of a CSI driver in references: a subdomain in any case, at most as long as a label. */
export function validateCsiDriverName(name: string, path: string): FieldError[] {
  const errors = name === '' ? [required(path)] : [];
  if (Buffer.byteLength(name) > maxDriverName) errors.push(tooLong(path, maxDriverName));
  for (const message of isDNS1123Subdomain(name.toLowerCase())) errors.push(invalid(path, name, message));
  return errors;
}
