import { unsupportedMediaType } from '../../objects/status-errors.ts';

/** What a body may be written as. */
export type MediaType = 'application/json' | 'application/yaml' | 'application/vnd.kubernetes.protobuf';

/** As kube-apiserver lists them in its answers. */
export const servedMediaTypes = 'application/json, application/yaml, application/vnd.kubernetes.protobuf';

export type PatchType = 'json' | 'merge' | 'strategic' | 'apply';

const patchTypes: ReadonlyMap<string, PatchType> = new Map([
  ['application/json-patch+json', 'json'],
  ['application/merge-patch+json', 'merge'],
  ['application/strategic-merge-patch+json', 'strategic'],
  ['application/apply-patch+yaml', 'apply'],
]);

/** `Text/HTML` of ` Text/HTML; charset=utf-8`. */
function essence(contentType: string): string {
  const end = contentType.indexOf(';');
  return (end === -1 ? contentType : contentType.slice(0, end)).trim();
}

/**
 * The form of a request body; without a Content-Type it is JSON.
 *
 * @throws {StatusError} 415
 */
export function bodyMediaType(contentType: string | undefined): MediaType {
  if (contentType === undefined || contentType === '') return 'application/json';
  const type = essence(contentType).toLowerCase();
  if (type === 'application/json' || type === 'application/yaml') return type;
  if (type === 'application/vnd.kubernetes.protobuf') return type;
  throw unsupportedMediaType(
    `the body of the request was in an unknown format - accepted media types include: ${servedMediaTypes}`,
  );
}

/**
 * The patch type of a Content-Type, which go-restful compares letter for letter.
 *
 * @param customResource has no strategic merge patch, and answers a wrong type in words of its own
 *   (apiextensions-apiserver serves it past go-restful).
 * @throws {StatusError} 415
 */
export function patchType(contentType: string | undefined, customResource: boolean): PatchType {
  const type = patchTypes.get(essence(contentType ?? ''));
  if (type !== undefined && !(customResource && type === 'strategic')) return type;
  if (!customResource) {
    throw unsupportedMediaType('415: Unsupported Media Type', {});
  }
  const accepted = [...patchTypes].filter(([, patch]) => patch !== 'strategic').map(([name]) => name);
  throw unsupportedMediaType(
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  );
}
