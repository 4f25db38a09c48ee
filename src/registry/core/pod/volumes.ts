import type { ObjectFieldSelector, Volume } from '../../../objects/types/core.generated.ts';
import { pushAll } from '../../../objects/lists.ts';
import { duplicate, type FieldError, required } from '../../validation/field-errors.ts';
import { pushLabelErrors } from './field-checks.ts';
import { defaultPullPolicy } from './image.ts';

import { validateVolumeSource } from './volume-sources.ts';

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

/** Names are unique labels, and each volume has one source (`ValidateVolumes`). */
export function validateVolumes(volumes: readonly Volume[], path: string): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set<string>();
  volumes.forEach((volume, i) => {
    const { name } = volume;
    const at = `${path}[${i}]`;
    pushAll(errors, validateVolumeSource(volume, at));
    if (name === '') errors.push(required(`${at}.name`));
    else pushLabelErrors(errors, `${at}.name`, name);
    if (name !== '' && names.has(name)) errors.push(duplicate(`${at}.name`, name));
    names.add(name);
  });
  return errors;
}
