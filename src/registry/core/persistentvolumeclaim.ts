import type { PersistentVolumeClaim } from '../../objects/types/core.generated.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { jsonEqual } from '../../objects/json.ts';
import { compareQuantities } from '../../objects/quantity.ts';
import {
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
} from '../validation/field-errors.ts';
import { genericStrategy, addEmptyParts } from '../generic/generic.ts';
import { nameIsDNSSubdomain } from '../../objects/names.ts';

const accessModes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'];
/** What a volume may be mounted as. */
export const volumeModes = ['Block', 'Filesystem'];

/** Admission StorageObjectInUseProtection: a claim stays while a Pod uses it, a volume while it is bound. */
export function protectStorage({ kind, metadata }: KubeObject): void {
  const protection = `kubernetes.io/${kind === 'PersistentVolume' ? 'pv' : 'pvc'}-protection`;
  const finalizers = (metadata.finalizers ??= []);
  if (!finalizers.includes(protection)) finalizers.push(protection);
}

/** The rules of PersistentVolumeClaims (`ValidatePersistentVolumeClaim`). */
export const persistentVolumeClaimStrategy = genericStrategy<PersistentVolumeClaim>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  deleteReturnsObject: true,
  hasStatus: true,
  repeatsCreate: 'before',
  setDefaults(claim) {
    addEmptyParts(claim);
    claim.spec.volumeMode ??= 'Filesystem';
    claim.status.phase ??= 'Pending';
  },
  prepareForCreate(claim) {
    claim.status = { phase: 'Pending' };
  },
  validateCreate: ({ spec }) => validateSpec(spec),
  validateUpdate: ({ spec }, old) => validateChange(spec, old.spec),
});

/** The access modes of a claim or a volume. @param absent says that there must be one. */
export function validateAccessModes(modes: readonly string[], absent: string): FieldError[] {
  const path = 'spec.accessModes';
  const errors: FieldError[] = modes.length === 0 ? [required(path, absent)] : [];
  for (const mode of modes) {
    if (!accessModes.includes(mode)) errors.push(notSupported(path, mode, accessModes));
  }
  if (modes.includes('ReadWriteOncePod') && modes.length > 1) {
    errors.push(forbiddenField(path, 'may not use ReadWriteOncePod with other access modes'));
  }
  return errors;
}

function validateSpec(spec: PersistentVolumeClaim['spec']): FieldError[] {
  const { accessModes: modes = [], volumeMode } = spec;
  const errors = validateAccessModes(modes, 'at least 1 access mode is required');
  const storage = spec.resources?.requests?.['storage'];
  if (storage === undefined) errors.push(required('spec.resources[storage]'));
  else if (compareQuantities(storage, '0') <= 0) {
    errors.push(invalid('spec.resources[storage]', storage, 'must be greater than zero'));
  }
  if (volumeMode !== undefined && !volumeModes.includes(volumeMode)) {
    errors.push(notSupported('spec.volumeMode', volumeMode, volumeModes));
  }
  return errors;
}

/** A claim may ask for more storage, and be bound; nothing else changes. */
function validateChange(
  spec: PersistentVolumeClaim['spec'],
  old: PersistentVolumeClaim['spec'],
): FieldError[] {
  const { volumeName = '' } = old;
  const bound = volumeName === '' ? spec : { ...spec, volumeName };
  const wanted = { ...bound, resources: old.resources, volumeName: spec.volumeName };
  const before = volumeName === '' ? { ...old, volumeName: spec.volumeName } : old;
  if (jsonEqual(wanted, before)) return [];
  const detail =
    'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims';
  return [forbiddenField('spec', detail)];
}
