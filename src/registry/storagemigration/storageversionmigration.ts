import { conditionStatus, jsonEqual } from '../../objects/json.ts';
import { pushAll } from '../../objects/lists.ts';
import { isDNS1035Label, isDNS1123Subdomain, nameIsDNSSubdomain } from '../../objects/names.ts';
import type {
  StorageVersionMigration,
  StorageVersionMigrationSpec,
} from '../../objects/types/storagemigration.generated.ts';
import { genericStrategy, resetMetaForStatus } from '../generic/generic.ts';
import { validateConditions } from '../validation/conditions.ts';
import { type FieldError, invalid, required } from '../validation/field-errors.ts';

type Migration = StorageVersionMigration;

/** The rules of StorageVersionMigrations (`apis/storagemigration/validation`). */
export const storageVersionMigrationStrategy = genericStrategy<Migration>({
  namespaced: false,
  nameRule: nameIsDNSSubdomain,
  allowUnconditionalUpdate: false,
  hasStatus: true,
  statusResets: [['metadata']],
  prepareStatus: resetMetaForStatus,
  setDefaults(migration: Partial<Pick<Migration, 'spec' | 'status'>>) {
    migration.spec ??= { resource: { group: '', resource: '' } };
    migration.status ??= {};
  },
  validateCreate: validateResource,
  // A create's errors come first, those of the metadata too.
  repeatsCreate: 'before',
  validateUpdate: ({ spec }, old) =>
    jsonEqual(spec, old.spec) ? [] : [invalid('spec', shownSpec(spec), 'field is immutable')],
  validateStatus,
});

/** The spec as errors show it: Go's internal type has no names of JSON. */
function shownSpec({ resource }: StorageVersionMigrationSpec): object {
  return { Resource: { group: resource.group, resource: resource.resource } };
}

function validateResource({ spec }: Migration): FieldError[] {
  const { group, resource } = spec.resource;
  const path = 'spec.resource';
  const errors: FieldError[] = [];
  if (resource === '') errors.push(required(`${path}.resource`, 'resource is required to be set'));
  else {
    const faults = isDNS1035Label(resource);
    if (faults.length > 0) errors.push(invalid(`${path}.resource`, resource, faults.join(',')));
  }
  const faults = group === '' ? [] : isDNS1123Subdomain(group);
  if (faults.length > 0) errors.push(invalid(`${path}.group`, group, faults.join(',')));
  return errors;
}

/** Without zeros in front; 0 is no version of a state. */
const versionForm = /^[1-9][0-9]*$/;

function validateStatus({ status }: Migration, old: Migration): FieldError[] {
  const { resourceVersion = '', conditions = [] } = status;
  const path = 'status.resourceVersion';
  const errors: FieldError[] = [];
  if (resourceVersion !== '' && !versionForm.test(resourceVersion)) {
    const detail = `resource version is not well formed: ${resourceVersion}`;
    errors.push(invalid(path, resourceVersion, detail));
  }
  pushAll(errors, validateConditions(conditions, 'status.conditions'));
  const before = old.status.resourceVersion ?? '';
  if (before !== '' && before !== resourceVersion) {
    errors.push(invalid(path, resourceVersion, 'field is immutable'));
  }
  const refuse = (detail: string) => errors.push(invalid('status.conditions', conditions, detail));
  const [succeeded, failed] = [isTrue(status, 'Succeeded'), isTrue(status, 'Failed')];
  if (succeeded && failed) refuse('Both success and failed conditions cannot be true at the same time');
  if (isTrue(old.status, 'Succeeded') && !succeeded) {
    refuse('Success condition cannot be set to false once it is true');
  }
  if (isTrue(old.status, 'Failed') && !failed) {
    refuse('Failed condition cannot be set to false once it is true');
  }
  return errors;
}

function isTrue({ conditions = [] }: Migration['status'], type: string): boolean {
  return conditionStatus(conditions, type) === 'True';
}
