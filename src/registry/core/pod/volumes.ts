import type {
  Container,
  DownwardAPIVolumeFile,
  KeyToPath,
  Volume,
  VolumeProjection,
  ObjectFieldSelector,
} from '../../../objects/types/core.generated.ts';
import { certificatePaths, validateBundle, validateCertificate } from './credentials.ts';
import { validateDescendingPath, validateFilePath, validateNoBacksteps } from './field-checks.ts';
import { parseImage } from '../../../objects/formats/image-reference.ts';
import { pushAll } from '../../../objects/lists.ts';
import {
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
  duplicate,
  notFoundField,
} from '../../validation/field-errors.ts';
import { validateFieldSelector, validateResourceSelector } from './env.ts';
import { pushChoiceErrors, pushLabelErrors } from './field-checks.ts';

/** Always for the tag `latest`, the default of an image without tag and digest. */
export function defaultPullPolicy(image: string): 'Always' | 'IfNotPresent' {
  const parsed = parseImage(image);
  if (typeof parsed === 'string') return 'IfNotPresent';
  const { tag, digest } = parsed;
  return (tag ?? (digest === undefined ? 'latest' : '')) === 'latest' ? 'Always' : 'IfNotPresent';
}

export const pullPolicies = ['Always', 'IfNotPresent', 'Never'];
const maxMode = 0o777;
const minTokenSeconds = 10 * 60;
const maxTokenSeconds = 2 ** 32;
const hostPathTypes = [
  '',
  'BlockDevice',
  'CharDevice',
  'Directory',
  'DirectoryOrCreate',
  'File',
  'FileOrCreate',
  'Socket',
];
const fieldsOfVolume = [
  'metadata.annotations',
  'metadata.labels',
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
];

/** The order in which kube-apiserver checks sources: all but the first that is set are refused. */
const sources = [
  'emptyDir',
  'hostPath',
  'gitRepo',
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'secret',
  'nfs',
  'iscsi',
  'glusterfs',
  'flocker',
  'persistentVolumeClaim',
  'rbd',
  'cinder',
  'cephfs',
  'quobyte',
  'downwardAPI',
  'fc',
  'flexVolume',
  'configMap',
  'azureFile',
  'vsphereVolume',
  'photonPersistentDisk',
  'portworxVolume',
  'azureDisk',
  'storageos',
  'projected',
  'scaleIO',
  'csi',
  'ephemeral',
  'image',
];
/** Sources with another name in errors. */
const spelledAs = new Map([
  ['cephfs', 'cephFS'],
  ['downwardAPI', 'downwarAPI'],
]);

/**
 * A volume has one source, and it is complete (`validateVolumeSource`). Sources of storage vendors are not validated.
 */
function validateVolumeSource(volume: Volume, path: string, old: readonly Volume[]): FieldError[] {
  const [first, ...more] = sources.filter((source) => Object.hasOwn(volume, source));
  if (first === undefined) return [required(path, 'must specify a volume type')];
  const errors = validateFirst(volume, first, `${path}.${first}`, old);
  for (const source of more) {
    const at = `${path}.${spelledAs.get(source) ?? source}`;
    errors.push(forbiddenField(at, 'may not specify more than 1 volume type'));
  }
  return errors;
}

function validateFirst(volume: Volume, source: string, path: string, old: readonly Volume[]): FieldError[] {
  const { image } = volume;
  const { hostPath, secret, configMap, persistentVolumeClaim, downwardAPI, projected, nfs } = volume;
  switch (source) {
    case 'hostPath':
      return validateHostPath(hostPath, path);
    case 'secret':
      return [
        ...missing(secret?.secretName, `${path}.secretName`),
        ...validateMode(secret?.defaultMode, `${path}.defaultMode`),
        ...validateItems(secret?.items, path),
      ];
    case 'configMap':
      return [
        ...missing(configMap?.name, `${path}.name`),
        ...validateMode(configMap?.defaultMode, `${path}.defaultMode`),
        ...validateItems(configMap?.items, path),
      ];
    case 'persistentVolumeClaim':
      return missing(persistentVolumeClaim?.claimName, `${path}.claimName`);
    case 'nfs':
      return validateNfs(nfs, path);
    case 'downwardAPI':
      return [
        ...validateMode(downwardAPI?.defaultMode, `${path}.defaultMode`),
        // Errors of an item are reported at the list.
        ...(downwardAPI?.items ?? []).flatMap((file) => validateDownwardFile(file, path)),
      ];
    case 'image':
      return validateImage(image ?? {}, path, old);
    case 'projected':
      return [
        ...validateMode(projected?.defaultMode, `${path}.defaultMode`),
        ...validateProjections(projected?.sources ?? [], path),
      ];
    default:
      return [];
  }
}

/** The reference was optional in templates: an update keeps an empty one (`validateImageVolumeSource`). */
function validateImage(
  { reference = '', pullPolicy }: NonNullable<Volume['image']>,
  path: string,
  old: readonly Volume[],
): FieldError[] {
  const mayBeEmpty = old.some(({ image }) => image !== undefined && (image.reference ?? '') === '');
  const errors = mayBeEmpty ? [] : missing(reference, `${path}.reference`);
  pushChoiceErrors(errors, `${path}.pullPolicy`, pullPolicy, pullPolicies);
  return errors;
}

/** A folder or file of the node (`validateHostPathVolumeSource`). */
export function validateHostPath(hostPath: Volume['hostPath'], path: string): FieldError[] {
  const { path: place = '', type = '' } = hostPath ?? {};
  if (place === '') return [required(`${path}.path`)];
  const errors = validateNoBacksteps(place, `${path}.path`);
  if (!hostPathTypes.includes(type)) errors.push(notSupported(`${path}.type`, type, hostPathTypes));
  return errors;
}

/** A folder of a server (`validateNFSVolumeSource`). */
export function validateNfs(nfs: Volume['nfs'], path: string): FieldError[] {
  const place = nfs?.path ?? '';
  const errors = [...missing(nfs?.server, `${path}.server`), ...missing(place, `${path}.path`)];
  if (!place.startsWith('/')) errors.push(invalid(`${path}.path`, place, 'must be an absolute path'));
  return errors;
}

function validateProjections(projections: readonly VolumeProjection[], path: string): FieldError[] {
  const errors: FieldError[] = [];
  const places = new Set<string>();
  const claim = (place: string, value: string) => {
    if (place !== '' && places.has(place)) errors.push(invalid(path, value, 'conflicting duplicate paths'));
    places.add(place);
  };
  projections.forEach((projection, i) => {
    const at = `${path}.sources[${i}]`;
    const { secret, configMap, downwardAPI, serviceAccountToken: token } = projection;
    const { clusterTrustBundle: bundle, podCertificate: certificate } = projection;
    for (const [member, source] of Object.entries({ secret, configMap })) {
      if (source === undefined) continue;
      const { name = '', items = [] } = source;
      pushAll(errors, missing(name, `${at}.${member}.name`));
      items.forEach((item, j) => {
        pushAll(errors, validateKeyToPath(item, `${at}.${member}.items[${j}]`));
        claim(item.path, name);
      });
    }
    for (const file of downwardAPI?.items ?? []) {
      pushAll(errors, validateDownwardFile(file, `${at}.downwardAPI`));
      claim(file.path, file.path);
    }
    if (token !== undefined) {
      const { expirationSeconds: seconds = 0, path: place } = token;
      const where = `${at}.serviceAccountToken.expirationSeconds`;
      if (seconds < minTokenSeconds) {
        errors.push(invalid(where, seconds, 'may not specify a duration less than 10 minutes'));
      }
      if (seconds > maxTokenSeconds) {
        errors.push(invalid(where, seconds, 'may not specify a duration larger than 2^32 seconds'));
      }
      pushAll(errors, place === '' ? [required(`${path}.path`)] : validateFilePath(place, `${path}.path`));
    }
    if (bundle !== undefined) {
      pushAll(errors, validateBundle(bundle, `${at}.clusterTrustBundle`));
      if (places.has(bundle.path)) errors.push(invalid(path, bundle.path, 'conflicting duplicate paths'));
      places.add(bundle.path);
    }
    if (certificate !== undefined) {
      pushAll(errors, validateCertificate(certificate, `${at}.podCertificate`));
      for (const member of certificatePaths) claim(certificate[member] ?? '', certificate[member] ?? '');
    }
    const kinds = [secret, configMap, downwardAPI, token, bundle, certificate];
    if (kinds.filter((source) => source !== undefined).length > 1) {
      errors.push(forbiddenField(at, 'may not specify more than 1 volume type per source'));
    }
  });
  return errors;
}

function validateDownwardFile(file: DownwardAPIVolumeFile, path: string): FieldError[] {
  const { path: place, fieldRef, resourceFieldRef, mode } = file;
  const errors = [...missing(place, `${path}.path`), ...validateFilePath(place, `${path}.path`)];
  if (fieldRef !== undefined) {
    pushAll(errors, validateFieldSelector(fieldRef, fieldsOfVolume, `${path}.fieldRef`));
    if (resourceFieldRef !== undefined) {
      const detail = 'fieldRef and resourceFieldRef can not be specified simultaneously';
      errors.push(invalid(path, 'resource', detail));
    }
  } else if (resourceFieldRef !== undefined) {
    pushAll(errors, validateResourceSelector(resourceFieldRef, `${path}.resourceFieldRef`, true));
  } else {
    errors.push(required(path, 'one of fieldRef and resourceFieldRef is required'));
  }
  return [...errors, ...validateMode(mode, `${path}.mode`)];
}

function validateItems(items: readonly KeyToPath[] | undefined, path: string): FieldError[] {
  return (items ?? []).flatMap((item, i) => validateKeyToPath(item, `${path}.items[${i}]`));
}

function validateKeyToPath({ key, path: place, mode }: KeyToPath, path: string): FieldError[] {
  return [
    ...missing(key, `${path}.key`),
    ...missing(place, `${path}.path`),
    ...validateFilePath(place, `${path}.path`),
    ...validateMode(mode, `${path}.mode`),
  ];
}

function validateMode(mode: number | undefined, path: string): FieldError[] {
  if (mode === undefined || (mode >= 0 && mode <= maxMode)) return [];
  return [invalid(path, mode, 'must be a number between 0 and 0777 (octal), both inclusive')];
}

function missing(value: string | undefined, path: string): FieldError[] {
  return value === undefined || value === '' ? [required(path)] : [];
}

const fileMode = 0o644;

/** Versioned defaults of a volume; one without a source is an empty directory (`SetDefaults_Volume`). */
export function setVolumeDefaults(volume: Volume): void {
  if (Object.keys(volume).every((member) => member === 'name')) {
    volume.emptyDir = {};
  }
  if (volume.hostPath !== undefined) volume.hostPath.type ??= '';
  for (const source of [volume.secret, volume.configMap, volume.downwardAPI, volume.projected]) {
    if (source !== undefined) source.defaultMode ??= fileMode;
  }
  for (const { fieldRef } of volume.downwardAPI?.items ?? []) setFieldDefaults(fieldRef);
  for (const { serviceAccountToken, downwardAPI } of volume.projected?.sources ?? []) {
    if (serviceAccountToken !== undefined) serviceAccountToken.expirationSeconds ??= 3600;
    for (const { fieldRef } of downwardAPI?.items ?? []) setFieldDefaults(fieldRef);
  }
  if (volume.iscsi !== undefined && (volume.iscsi.iscsiInterface ?? '') === '') {
    volume.iscsi.iscsiInterface = 'default';
  }
  if (volume.image !== undefined && (volume.image.pullPolicy ?? '') === '') {
    volume.image.pullPolicy = defaultPullPolicy(volume.image.reference ?? '');
  }
  const claim = volume.ephemeral?.volumeClaimTemplate?.spec;
  if (claim !== undefined) claim.volumeMode ??= 'Filesystem';
}

/** A reference to a field of the Pod has the version of its schema (`SetDefaults_ObjectFieldSelector`). */
export function setFieldDefaults(field: ObjectFieldSelector | undefined): void {
  if (field !== undefined && (field.apiVersion ?? '') === '') field.apiVersion = 'v1';
}

/** Names are unique labels, and each volume has one source (`ValidateVolumes`). @param old the stored ones. */
export function validateVolumes(
  volumes: readonly Volume[],
  path: string,
  old: readonly Volume[] = [],
): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set<string>();
  volumes.forEach((volume, i) => {
    const { name } = volume;
    const at = `${path}[${i}]`;
    pushAll(errors, validateVolumeSource(volume, at, old));
    if (name === '') errors.push(required(`${at}.name`));
    else pushLabelErrors(errors, `${at}.name`, name);
    if (name !== '' && names.has(name)) errors.push(duplicate(`${at}.name`, name));
    names.add(name);
  });
  return errors;
}

/** Each volume is at a place of its own (`ValidateVolumeMounts`). */
export function validateMounts(
  { volumeMounts = [], volumeDevices = [] }: Partial<Container>,
  volumes: readonly Volume[],
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set(volumes.map(({ name }) => name));
  const places = new Set<string>();
  volumeMounts.forEach(({ name, mountPath, subPath = '', subPathExpr = '' }, i) => {
    const at = `${path}[${i}]`;
    if (name === '') errors.push(required(`${at}.name`));
    if (!names.has(name)) errors.push(notFoundField(`${at}.name`, name));
    if (mountPath === '') errors.push(required(`${at}.mountPath`));
    if (places.has(mountPath)) errors.push(invalid(`${at}.mountPath`, mountPath, 'must be unique'));
    places.add(mountPath);
    if (volumeDevices.some((device) => device.name === name)) {
      errors.push(invalid(`${at}.name`, name, 'must not already exist in volumeDevices'));
    }
    if (volumeDevices.some(({ devicePath }) => devicePath === mountPath)) {
      const detail = 'must not already exist as a path in volumeDevices';
      errors.push(invalid(`${at}.mountPath`, mountPath, detail));
    }
    // Errors of a path inside the volume are reported at the list.
    if (subPath !== '') pushAll(errors, validateDescendingPath(subPath, `${path}.subPath`));
    if (subPathExpr === '') return;
    if (subPath !== '') {
      const detail = 'subPathExpr and subPath are mutually exclusive';
      errors.push(invalid(`${at}.subPathExpr`, subPathExpr, detail));
    }
    pushAll(errors, validateDescendingPath(subPathExpr, `${path}.subPathExpr`));
  });
  return errors;
}

/** Block devices are claims, and no mounts (`ValidateVolumeDevices`). */
export function validateDevices(
  { volumeMounts = [], volumeDevices = [] }: Partial<Container>,
  volumes: readonly Volume[],
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set<string>();
  const places = new Set<string>();
  volumeDevices.forEach(({ name, devicePath }, i) => {
    const at = (member: string): string => `${path}[${i}].${member}`;
    const volume = volumes.find((each) => each.name === name);
    if (name === '') errors.push(required(at('name')));
    if (names.has(name)) errors.push(invalid(at('name'), name, 'must be unique'));
    if (volume === undefined) errors.push(notFoundField(at('name'), name));
    else if (volume.persistentVolumeClaim === undefined && volume.ephemeral === undefined) {
      const detail = 'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode';
      errors.push(invalid(at('name'), name, detail));
    }
    if (devicePath === '') errors.push(required(at('devicePath')));
    if (places.has(devicePath)) errors.push(invalid(at('devicePath'), devicePath, 'must be unique'));
    if (devicePath.split('/').includes('..')) {
      errors.push(invalid(at('devicePath'), devicePath, "can not contain backsteps ('..')"));
    } else places.add(devicePath);
    if (volumeMounts.some((mount) => mount.name === name)) {
      errors.push(invalid(at('name'), name, 'must not already exist in volumeMounts'));
    }
    if (volumeMounts.some(({ mountPath }) => mountPath === devicePath)) {
      const detail = 'must not already exist as a path in volumeMounts';
      errors.push(invalid(at('devicePath'), devicePath, detail));
    }
    if (name !== '') names.add(name);
  });
  return errors;
}
