import type { PersistentVolume, PersistentVolumeSpec } from '../../objects/types/core.generated.ts';
import { at, isRecord, jsonEqual } from '../../objects/json.ts';
import { pushAll } from '../../objects/lists.ts';
import { nameIsDNSSubdomain } from '../../objects/names.ts';
import { compareQuantities } from '../../objects/formats/quantity.ts';
import { addEmptyParts, genericStrategy } from '../generic/generic.ts';
import { validateImmutableField } from '../generic/metadata.ts';
import {
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
  tooLong,
} from '../validation/field-errors.ts';
import { validateAccessModes, volumeModes } from './persistentvolumeclaim.ts';
import { validateNodeSelector } from './pod/scheduling.ts';
import { validateHostPath, validateNfs } from './pod/volumes.ts';

const reclaimPolicies = ['Delete', 'Recycle', 'Retain'];

/** The sources in the order in which kube-apiserver checks them, and what each must have. */
const sources = {
  hostPath: [],
  gcePersistentDisk: ['pdName'],
  awsElasticBlockStore: ['volumeID'],
  glusterfs: ['endpoints', 'path'],
  flocker: [],
  nfs: [],
  rbd: ['monitors', 'image'],
  quobyte: ['registry', 'volume'],
  cephfs: ['monitors'],
  iscsi: ['targetPortal', 'iqn'],
  cinder: ['volumeID'],
  fc: [],
  flexVolume: ['driver'],
  azureFile: ['secretName', 'shareName'],
  vsphereVolume: ['volumePath'],
  azureDisk: ['diskName', 'diskURI'],
  photonPersistentDisk: ['pdID'],
  portworxVolume: ['volumeID'],
  scaleIO: ['gateway', 'system', 'volumeName'],
  local: ['path'],
  storageos: ['volumeName', 'volumeNamespace'],
  csi: ['driver', 'volumeHandle'],
} as const satisfies Partial<Record<keyof PersistentVolumeSpec, readonly string[]>>;

type Source = keyof typeof sources;

const sourceNames = Object.keys(sources).filter((name): name is Source => Object.hasOwn(sources, name));

/** The defaults of members of sources (`SetDefaults_ISCSIPersistentVolumeSource` …); an empty text is replaced, too. */
const sourceDefaults: readonly (readonly [source: Source, member: string, value: string | boolean])[] = [
  ['hostPath', 'type', ''],
  ['iscsi', 'iscsiInterface', 'default'],
  ['rbd', 'pool', 'rbd'],
  ['rbd', 'user', 'admin'],
  ['rbd', 'keyring', '/etc/ceph/keyring'],
  ['scaleIO', 'storageMode', 'ThinProvisioned'],
  ['scaleIO', 'fsType', 'xfs'],
  ['azureDisk', 'cachingMode', 'ReadWrite'],
  ['azureDisk', 'kind', 'Shared'],
  ['azureDisk', 'fsType', 'ext4'],
  ['azureDisk', 'readOnly', false],
];

/** The rules of PersistentVolumes (`SetDefaults_PersistentVolume`, `ValidatePersistentVolume`). */
export const persistentVolumeStrategy = genericStrategy<PersistentVolume>({
  namespaced: false,
  nameRule: nameIsDNSSubdomain,
  deleteReturnsObject: true,
  hasStatus: true,
  repeatsCreate: 'before',
  setDefaults(volume) {
    addEmptyParts(volume);
    volume.status.phase ??= 'Pending';
    const { spec } = volume;
    spec.persistentVolumeReclaimPolicy ??= 'Retain';
    spec.volumeMode ??= 'Filesystem';
    for (const [name, member, value] of sourceDefaults) {
      const source: unknown = spec[name];
      if (isRecord(source) && (source[member] ?? '') === '') source[member] = value;
    }
  },
  prepareForCreate(volume, { now }) {
    volume.status = { phase: 'Pending', lastPhaseTransitionTime: now };
  },
  // persistentvolume/strategy.go: the server's time, but for a client that says another.
  prepareStatus({ status }, old, { now }) {
    const isSaid = status.lastPhaseTransitionTime !== old.status.lastPhaseTransitionTime;
    if (status.phase !== old.status.phase && !isSaid) status.lastPhaseTransitionTime = now;
  },
  validateCreate: ({ spec }) => validateSpec(spec),
  validateUpdate({ spec }, old) {
    const errors: FieldError[] = [];
    if (sourceNames.some((name) => !jsonEqual(spec[name], old.spec[name]))) {
      const detail = 'spec.persistentvolumesource is immutable after creation';
      errors.push(forbiddenField('spec.persistentvolumesource', detail));
    }
    pushAll(errors, validateImmutableField(spec.volumeMode, old.spec.volumeMode, 'volumeMode'));
    if (old.spec.nodeAffinity === undefined) return errors;
    return [...errors, ...validateImmutableField(spec.nodeAffinity, old.spec.nodeAffinity, 'nodeAffinity')];
  },
});

function validateSpec(spec: PersistentVolumeSpec): FieldError[] {
  const { capacity, persistentVolumeReclaimPolicy: policy = '', storageClassName = '', volumeMode } = spec;
  const errors = validateAccessModes(spec.accessModes ?? [], '');
  const amounts = Object.entries(capacity ?? {});
  if (amounts.length === 0) errors.push(required('spec.capacity'));
  if (amounts.length !== 1 || amounts[0]?.[0] !== 'storage') {
    errors.push(notSupported('spec.capacity', capacity ?? null, ['storage']));
  }
  for (const [name, amount] of amounts) {
    const path = `spec.capacity[${name}]`;
    if (compareQuantities(amount, '0') <= 0) errors.push(invalid(path, amount, 'must be greater than zero'));
  }
  if (policy !== '' && !reclaimPolicies.includes(policy)) {
    errors.push(notSupported('spec.persistentVolumeReclaimPolicy', policy, reclaimPolicies));
  }
  pushAll(errors, validateAffinity(spec), validateSources(spec));
  if (policy === 'Recycle' && /^\/[/.]*$/.test(spec.hostPath?.path ?? '')) {
    const detail = "may not be 'recycle' for a hostPath mount of '/'";
    errors.push(forbiddenField('spec.persistentVolumeReclaimPolicy', detail));
  }
  if (storageClassName !== '') {
    for (const message of nameIsDNSSubdomain(storageClassName, false)) {
      errors.push(invalid('spec.storageClassName', storageClassName, message));
    }
  }
  if (volumeMode !== undefined && !volumeModes.includes(volumeMode)) {
    errors.push(notSupported('spec.volumeMode', volumeMode, volumeModes));
  }
  return [...errors, ...validateAttributesClass(spec)];
}

function validateAttributesClass({
  volumeAttributesClassName: name,
  csi,
}: PersistentVolumeSpec): FieldError[] {
  if (name === undefined) return [];
  const path = 'spec.volumeAttributesClassName';
  const faults =
    name === ''
      ? [required(path, 'an empty string is disallowed')]
      : nameIsDNSSubdomain(name, false).map((message) => invalid(path, name, message));
  const detail = 'has to be specified when using volumeAttributesClassName';
  return csi === undefined ? [...faults, required('spec.csi', detail)] : faults;
}

function validateAffinity({ nodeAffinity }: PersistentVolumeSpec): FieldError[] {
  if (nodeAffinity === undefined) return [];
  const path = 'spec.nodeAffinity.required';
  if (nodeAffinity.required === undefined) return [required(path, 'must specify required node constraints')];
  return validateNodeSelector(nodeAffinity.required, path);
}

function validateSources(spec: PersistentVolumeSpec): FieldError[] {
  const [first, ...more] = sourceNames.filter((name) => spec[name] !== undefined);
  if (first === undefined) return [required('spec', 'must specify a volume type')];
  return [
    ...validateSource(spec, first),
    ...more.map((name) => forbiddenField(`spec.${name}`, 'may not specify more than 1 volume type')),
  ];
}

function validateSource(spec: PersistentVolumeSpec, name: Source): FieldError[] {
  const path = `spec.${name}`;
  const errors: FieldError[] = sources[name]
    .filter((member) => isMissing(at(spec, name, member)))
    .map((member) => required(`${path}.${member}`));
  const { hostPath, nfs, iscsi, fc, local, csi } = spec;
  if (name === 'hostPath' && hostPath !== undefined) pushAll(errors, validateHostPath(hostPath, path));
  if (name === 'nfs') pushAll(errors, validateNfs(nfs, path));
  if (name === 'iscsi' && iscsi !== undefined) {
    const { iqn, lun, secretRef, chapAuthDiscovery = false, chapAuthSession = false } = iscsi;
    if (iqn !== '' && !/^(iqn|eui|naa)/.test(iqn)) {
      errors.push(invalid(`${path}.iqn`, iqn, 'must be valid format starting with iqn, eui, or naa'));
    }
    if (lun < 0 || lun > 255) {
      errors.push(invalid(`${path}.lun`, lun, 'must be between 0 and 255, inclusive'));
    }
    const isSecretAsked = chapAuthDiscovery || chapAuthSession;
    if (isSecretAsked && secretRef === undefined) errors.push(required(`${path}.secretRef`));
  }
  if (name === 'azureFile' && spec.azureFile?.secretNamespace === '') {
    errors.push(required(`${path}.secretNamespace`));
  }
  if (name === 'fc') pushAll(errors, validateFibreChannel(fc, path));
  if (name === 'local') {
    const place = local?.path ?? '';
    if (place.split('/').includes('..')) errors.push(invalid(`${path}.path`, place, "must not contain '..'"));
    if (spec.nodeAffinity === undefined) {
      errors.push(required('spec.nodeAffinity', 'Local volume requires node affinity'));
    }
  }
  if (name === 'csi' && csi !== undefined) {
    if (csi.driver.length > 63) errors.push(tooLong(`${path}.driver`, 63));
    if (csi.driver === '') return errors;
    for (const message of nameIsDNSSubdomain(csi.driver.toLowerCase(), false)) {
      errors.push(invalid(`${path}.driver`, csi.driver, message));
    }
  }
  return errors;
}

function validateFibreChannel(fc: PersistentVolumeSpec['fc'], path: string): FieldError[] {
  const { targetWWNs = [], wwids = [], lun } = fc ?? {};
  const detail = 'must specify either targetWWNs or wwids, but not both';
  if (targetWWNs.length === 0 && wwids.length === 0) return [required(`${path}.targetWWNs`, detail)];
  if (targetWWNs.length > 0 && wwids.length > 0) {
    return [invalid(`${path}.targetWWNs`, targetWWNs, detail)];
  }
  if (targetWWNs.length === 0) return [];
  if (lun === undefined) return [required(`${path}.lun`, 'lun is required if targetWWNs is specified')];
  return lun < 0 || lun > 255 ? [invalid(`${path}.lun`, lun, 'must be between 0 and 255, inclusive')] : [];
}

function isMissing(value: unknown): boolean {
  return (
    value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0)
  );
}
