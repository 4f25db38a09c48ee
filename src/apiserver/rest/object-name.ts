import { badRequest } from '../../objects/status-errors.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { nameIsPathSegment } from '../../objects/names.ts';

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
