import type { KubeObject } from '../../objects/meta.ts';
import { conflict, modified, plainError, badRequest } from '../../objects/status.ts';
import { invalid, invalidObject } from '../../registry/validation/field-errors.ts';
import type { StoredObject } from '../storage/storage.ts';
import type { ServedResource } from './served-resource.ts';
import type { ServerCore } from './server-core.ts';
import { nameIsPathSegment } from '../../objects/names.ts';

/** Removes from a new object what the server alone sets (`rest.WipeObjectMetaSystemFields`). */
export function wipeSystemFields({ metadata }: KubeObject): void {
  delete metadata.creationTimestamp;
  delete metadata.uid;
  delete metadata.deletionTimestamp;
  delete metadata.deletionGracePeriodSeconds;
  delete metadata.selfLink;
}

/** Gives a new object its identity (`rest.FillObjectMetaSystemFields`). */
export function fillSystemFields(core: ServerCore, { metadata }: KubeObject, now: string): void {
  delete metadata.selfLink;
  metadata.uid = core.newUid();
  metadata.creationTimestamp = now;
}

/** A resourceVersion as the store has them: a number of 64 bits. */
export function isVersion(resourceVersion: string): boolean {
  return /^\d{1,40}$/.test(resourceVersion) && BigInt(resourceVersion) < 2n ** 64n;
}

/**
 * Restores immutable metadata of an update from the stored object (`rest.BeforeUpdate`). Runs before validation, so
 * that leaving these fields out is no error.
 */
export function keepSystemFields(object: KubeObject, old: KubeObject): void {
  const { metadata } = object;
  const before = old.metadata;
  if ((metadata.uid ?? '') === '' && before.uid !== undefined) metadata.uid = before.uid;
  if (before.creationTimestamp === undefined) delete metadata.creationTimestamp;
  else metadata.creationTimestamp = before.creationTimestamp;
  // Validation refuses a deletionTimestamp that a client brings along.
  if (before.deletionTimestamp !== undefined) metadata.deletionTimestamp = before.deletionTimestamp;
  if (before.deletionGracePeriodSeconds !== undefined) {
    metadata.deletionGracePeriodSeconds ??= before.deletionGracePeriodSeconds;
  }
  delete metadata.selfLink;
}

/**
 * Removes repeated owner references and warns of them (`dedupOwnerReferencesAndAddWarning`): the first of equal ones
 * stays.
 *
 * @param when `sent`: of a body before admission; `admitted`: of any new version after it, which for patches and applies
 *   is the only time.
 */
export function dedupOwnerReferences(
  object: KubeObject,
  when: 'sent' | 'admitted',
  warn: (text: string) => void,
): void {
  const owners = object.metadata.ownerReferences;
  if (owners === undefined || owners.length < 2) return;
  const seen = new Set<string>();
  const repeated: string[] = [];
  const kept = owners.filter((owner) => {
    const text = JSON.stringify([
      owner.apiVersion,
      owner.kind,
      owner.name,
      owner.uid,
      owner.controller,
      owner.blockOwnerDeletion,
    ]);
    if (seen.has(text)) {
      repeated.push(owner.uid);
      return false;
    }
    seen.add(text);
    return true;
  });
  if (repeated.length === 0) return;
  object.metadata.ownerReferences = kept;
  const where = when === 'sent' ? '' : ' after mutating admission happens';
  warn(
    `.metadata.ownerReferences contains duplicate entries${where}; API server dedups owner references in 1.20+, and may ` +
      `reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: ${repeated.join(', ')}`,
  );
}

/** @throws {StatusError} 409 when the client named another version than the stored one. */
export function checkResourceVersion(resource: ServedResource, object: KubeObject, live: StoredObject): void {
  const { metadata } = object;
  const version = metadata.resourceVersion ?? '';
  if (version === '' || version === '0') {
    if (!resource.definition.strategy.allowUnconditionalUpdate) {
      // Kubernetes names the plural here, where a Kind belongs.
      const { group, plural } = resource.definition;
      throw invalidObject({ group, kind: plural, name: metadata.name ?? '' }, [
        invalid('metadata.resourceVersion', 0, 'must be specified for an update'),
      ]);
    }
    metadata.resourceVersion = String(live.revision);
    return;
  }
  checkVersionIsNumber(version);
  if (Number(version) !== live.revision)
    throw conflict(resource.groupResource, metadata.name ?? '', modified);
}

/** @throws an error that is answered as a plain 500. */
export function checkVersionIsNumber(version = ''): void {
  if (version === '' || isVersion(version)) return;
  const why = /^\d+$/.test(version) ? 'value out of range' : 'invalid syntax';
  throw plainError(`strconv.ParseUint: parsing ${JSON.stringify(version)}: ${why}`);
}

const alphabet = 'bcdfghjklmnpqrstvwxz2456789';
const suffixLength = 5;
const maxBaseLength = 63 - suffixLength;

/** A name from `generateName`: the base, cut to 58 characters, and five random ones (`names/generate.go`). */
export function generateName(base: string, random: () => number): string {
  let suffix = '';
  for (let i = 0; i < suffixLength; i++) suffix += alphabet.charAt(Math.floor(random() * alphabet.length));
  return base.slice(0, maxBaseLength) + suffix;
}

/**
 * The namespace of the body must be the one of the path; an empty one is filled in, one of a cluster-scoped kind is
 * dropped
 * (`rest.EnsureObjectNamespaceMatchesRequestNamespace`). @throws {StatusError} 400
 */
export function matchNamespace(object: KubeObject, namespace: string): void {
  const own = object.metadata.namespace ?? '';
  if (own === namespace) return;
  if (namespace === '') {
    delete object.metadata.namespace;
    return;
  }
  if (own !== '') {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
  object.metadata.namespace = namespace;
}

/**
 * A name in a path that no key in the store could have (`NamespaceKeyFunc`), such as `..`.
 *
 * @throws {StatusError} 400
 */
export function checkPathName(name: string): void {
  const broken = nameIsPathSegment(name, false);
  if (broken.length > 0) {
    throw badRequest(`Name parameter invalid: ${JSON.stringify(name)}: ${broken.join(';')}`);
  }
}

/** The name of the body must be the one of the path. @throws {StatusError} 400 */
export function matchName(object: KubeObject, name: string): void {
  const own = object.metadata.name ?? '';
  if (own === '') {
    throw badRequest(
      `the name of the object (${name} based on URL) was undeterminable: name must be provided`,
    );
  }
  if (own !== name) {
    throw badRequest(`the name of the object (${own}) does not match the name on the URL (${name})`);
  }
}
