import type { PersistentVolumeClaim } from '../../objects/types/core.generated.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { at, jsonEqual } from '../../objects/json.ts';
import { compareQuantities } from '../../objects/formats/quantity.ts';
import {
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
} from '../validation/field-errors.ts';
import type { ClusterReader } from '../generic/strategy.ts';
import { genericStrategy, addEmptyParts } from '../generic/generic.ts';
import { nameIsDNSSubdomain } from '../../objects/names.ts';
import { classAnnotation, classOf, defaultStorageClass } from '../../objects/storage-classes.ts';

const accessModes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'];
/** What a volume may be mounted as. */
export const volumeModes = ['Block', 'Filesystem'];

/** Admission StorageObjectInUseProtection: a claim stays while a Pod uses it, a volume while it is bound. */
export function protectStorage({ kind, metadata }: KubeObject): void {
  const protection = `kubernetes.io/${kind === 'PersistentVolume' ? 'pv' : 'pvc'}-protection`;
  const finalizers = (metadata.finalizers ??= []);
  if (!finalizers.includes(protection)) finalizers.push(protection);
}

/** Admission DefaultStorageClass: a new claim that names no class gets the default class. */
export function setDefaultStorageClass(claim: PersistentVolumeClaim, cluster: ClusterReader): void {
  if (claim.spec.storageClassName !== undefined) return;
  if (claim.metadata.annotations?.[classAnnotation] !== undefined) return;
  const name = defaultStorageClass(cluster.list('storage.k8s.io', 'storageclasses'));
  if (name !== undefined) claim.spec.storageClassName = name;
}

/** Why a claim may not grow (`admission/storage/persistentvolume/resize`); undefined: it may, or does not. */
export function resizeObstacle(
  claim: PersistentVolumeClaim,
  old: PersistentVolumeClaim,
  cluster: ClusterReader,
): string | undefined {
  if (compareQuantities(requestOf(claim), requestOf(old)) <= 0) return undefined;
  if (old.status.phase !== 'Bound') return 'Only bound persistent volume claims can be expanded';
  const name = classOf(claim);
  const storageClass = name === '' ? undefined : cluster.get('storage.k8s.io', 'storageclasses', '', name);
  const isAllowed = name === classOf(old) && at(storageClass, 'allowVolumeExpansion') === true;
  return isAllowed
    ? undefined
    : 'only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize';
}

function requestOf({ spec }: PersistentVolumeClaim): string {
  return spec.resources?.requests?.['storage'] ?? '0';
}

/** The rules of PersistentVolumeClaims (`ValidatePersistentVolumeClaim`). */
export const persistentVolumeClaimStrategy = genericStrategy<PersistentVolumeClaim>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  deleteReturnsObject: true,
  hasStatus: true,
  repeatsCreate: 'before',
  // CSIVolumeHealth
  disabledStatus: [[['status', 'healthStatus']]],
  setDefaults(claim) {
    addEmptyParts(claim);
    claim.spec.volumeMode ??= 'Filesystem';
    claim.status.phase ??= 'Pending';
  },
  prepareForCreate(claim) {
    claim.status = { phase: 'Pending' };
  },
  validateCreate: ({ spec }) => validateSpec(spec),
  validateUpdate: ({ spec }, old) => validateChange(spec, old),
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

/** A claim may be bound, ask for more storage then, and get a class where it has none; nothing else changes. */
function validateChange(
  spec: PersistentVolumeClaim['spec'],
  { metadata, spec: old, status }: PersistentVolumeClaim,
): FieldError[] {
  const { volumeName = '', storageClassName = spec.storageClassName } = old;
  const bound = volumeName === '' ? spec : { ...spec, volumeName };
  const isBound = status.phase === 'Bound';
  const storage = old.resources?.requests?.['storage'] ?? '0';
  const requests = { ...spec.resources?.requests, storage };
  const resources = isBound ? { ...spec.resources, requests } : spec.resources;
  const wanted = { ...bound, resources, volumeName: spec.volumeName };
  // `validateStorageClassUpgradeFromNil`, `validateStorageClassUpgradeFromAnnotation`
  const mayGetClass = (metadata.annotations?.[classAnnotation] ?? storageClassName) === storageClassName;
  const before = {
    ...old,
    ...(volumeName === '' ? { volumeName: spec.volumeName } : {}),
    ...(mayGetClass && storageClassName !== undefined ? { storageClassName } : {}),
  };
  if (jsonEqual(wanted, before)) {
    const size = spec.resources?.requests?.['storage'] ?? '0';
    const isLess = compareQuantities(size, storage) < 0;
    if (!isBound || !isLess || compareQuantities(size, status.capacity?.['storage'] ?? '0') > 0) return [];
    return [forbiddenField('spec.resources.requests.storage', 'field can not be less than status.capacity')];
  }
  const detail =
    'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims';
  return [forbiddenField('spec', detail)];
}
