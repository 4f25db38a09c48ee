import { unsupportedMediaType, type StatusError, notAcceptable } from '../../objects/status.ts';

/**
 * - The media types of bodies and patches.
 * - Which form of an answer a client gets: the Accept rules of go-restful (the gate in front of built-in resources)
 *   and of apiserver `pkg/endpoints/handlers/negotiation`, which differ in what a wildcard matches.
 */

/** What a body may be written as. */
export type MediaType = 'application/json' | 'application/yaml' | 'application/vnd.kubernetes.protobuf';

/** As kube-apiserver lists them in its answers. */
const servedMediaTypes = 'application/json, application/yaml, application/vnd.kubernetes.protobuf';

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

/** The conversions of meta.k8s.io that a client can ask for with `as=`; "" is the object itself. */
type Conversion = '' | 'Table' | 'PartialObjectMetadata' | 'PartialObjectMetadataList';

/** The versions of meta.k8s.io that have these conversions. */
export type MetaVersion = 'v1' | 'v1beta1';

export interface Negotiated {
  readonly mediaType: MediaType;
  readonly as: Conversion;
  /** The version of the conversion. */
  readonly metaVersion: MetaVersion;
}

/**
 * The kinds of endpoint that differ in what they accept. `custom` are those of custom resources, which go-restful
 * does not guard; `review` are those of objects that are never stored, which have no tables and no metadata.
 */
export type EndpointKind = 'object' | 'collection' | 'watch' | 'review' | 'custom' | 'custom-watch';

const json: Negotiated = { mediaType: 'application/json', as: '', metaVersion: 'v1' };
const streamedMediaTypes = 'application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch';

const protobuf = 'application/vnd.kubernetes.protobuf';

/** What answers can be written as; a wildcard means the first. */
const writable: readonly MediaType[] = ['application/json', 'application/yaml', protobuf];

/** Collections list what a watch of them is written as, too. */
const streamable: readonly string[] = [...writable, streamedMediaTypes];

/**
 * Chooses the form of the answer from an Accept header. An error that a request ends in is written in the same
 * form where there is one, else as JSON.
 *
 * @throws {StatusError} 406
 */
export function negotiate(accept: string | undefined, endpoint: EndpointKind): Negotiated {
  if (accept === undefined || accept === '' || accept === '*/*' || accept === 'application/json') return json;
  const streams = endpoint === 'watch' || endpoint === 'custom-watch';
  const guarded = !endpoint.startsWith('custom');
  if (guarded) {
    requireProducible(accept, endpoint === 'collection' || endpoint === 'watch' ? streamable : writable);
  }

  for (const clause of parseAccept(accept)) {
    for (const mediaType of writable) {
      if (!matches(clause, mediaType)) continue;
      // Clients may ask for a stream where there is none; YAML has none.
      const stream = clause.parameters.get('stream') ?? '';
      if (stream !== '' && (stream !== 'watch' || mediaType === 'application/yaml')) continue;
      const converted = conversion(clause.parameters);
      if (converted === undefined || (converted.as !== '' && endpoint === 'review')) continue;
      // tables have no protobuf
      if (converted.as === 'Table' && mediaType === protobuf) continue;
      // Of custom objects only what meta.k8s.io makes of them has a protobuf.
      if (converted.as === '' && mediaType === protobuf && !guarded) continue;
      // The first type that fits a list counts, and there is no stream of YAML.
      if (streams && mediaType === 'application/yaml') throw unacceptable(streamedMediaTypes);
      return { mediaType, ...converted };
    }
  }
  throw unacceptable(servedMediaTypes);
}

function unacceptable(accepted: string): StatusError {
  return notAcceptable(`only the following media types are accepted: ${accepted}`);
}

/** The form of an error; undefined where the client accepts nothing that can be produced. */
export function negotiateError(accept: string | undefined): MediaType | undefined {
  if (accept === undefined || accept === 'application/json') return 'application/json';
  // Errors are sent neither as tables nor as metadata.
  const whole = parseAccept(accept).filter(({ parameters }) => !parameters.has('as'));
  return firstMatch(whole, writable);
}

/**
 * Whether a client accepts the aggregated discovery (`apidiscovery.k8s.io/v2`) rather than the plain documents, and
 * in which media type. v2beta1 is not served: its clients get the plain documents if they accept them.
 *
 * @param guarded whether go-restful comes first, which must find a media type by its name.
 * @throws {StatusError} 406
 */
export function negotiateDiscovery(
  accept: string | undefined,
  guarded: boolean,
): {
  readonly mediaType: MediaType;
  readonly isAggregated: boolean;
} {
  if (accept === undefined || accept === '' || accept === '*/*' || accept === 'application/json') {
    return { mediaType: 'application/json', isAggregated: false };
  }
  if (guarded) requireProducible(accept, writable);
  for (const clause of parseAccept(accept)) {
    for (const mediaType of writable) {
      if (!matches(clause, mediaType)) continue;
      const as = clause.parameters.get('as');
      if (as === undefined) return { mediaType, isAggregated: false };
      const version = clause.parameters.get('v');
      const known =
        mediaType !== protobuf &&
        as === 'APIGroupDiscoveryList' &&
        clause.parameters.get('g') === 'apidiscovery.k8s.io';
      if (known && version === 'v2') return { mediaType, isAggregated: true };
    }
  }
  throw unacceptable(servedMediaTypes);
}

/** The first of the media types that a client accepts, those it prefers first; undefined when it accepts none of them. */
export function firstAccepted<Offered extends string>(
  accept: string | undefined,
  offered: readonly Offered[],
): Offered | undefined {
  return firstMatch(parseAccept(accept === undefined || accept === '' ? '*/*' : accept), offered);
}

function firstMatch<Offered extends string>(
  clauses: readonly Clause[],
  offered: readonly Offered[],
): Offered | undefined {
  for (const clause of clauses) {
    const mediaType = offered.find((each) => matches(clause, each));
    if (mediaType !== undefined) return mediaType;
  }
  return undefined;
}

/**
 * go-restful's gate: one clause must name a type that the route produces, or be exactly `*` `/` `*`.
 *
 * @throws {StatusError} 406
 */
export function requireProducible(accept: string | undefined, produced: readonly string[]): void {
  if (accept === undefined || accept === '') return;
  for (const part of accept.split(',')) {
    const end = part.indexOf(';');
    const type = (end === -1 ? part : part.slice(0, end)).trim();
    if (type === '*/*' || produced.includes(type)) return;
  }
  throw notAcceptable(`406: Not Acceptable\n\nAvailable representations: ${produced.join(', ')}`, {});
}

/** The conversion of an Accept clause; undefined for an unknown one. */
function conversion(parameters: ReadonlyMap<string, string>): Omit<Negotiated, 'mediaType'> | undefined {
  const as = parameters.get('as') ?? '';
  if (as === '') return { as: '', metaVersion: 'v1' };
  const metaVersion = parameters.get('v');
  if (parameters.get('g') !== 'meta.k8s.io' || (metaVersion !== 'v1' && metaVersion !== 'v1beta1')) {
    return undefined;
  }
  if (as === 'Table' || as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList') {
    return { as, metaVersion };
  }
  return undefined;
}

interface Clause {
  readonly type: string;
  readonly subtype: string;
  readonly quality: number;
  readonly parameters: ReadonlyMap<string, string>;
}

function matches(clause: Clause, mediaType: string): boolean {
  if (clause.type === '*') return clause.subtype === '*';
  return (
    clause.type === 'application' && (clause.subtype === '*' || `application/${clause.subtype}` === mediaType)
  );
}

/** The clauses of an Accept header, the best quality first, equal ones as sent (goautoneg). */
function parseAccept(accept: string): Clause[] {
  const clauses: Clause[] = [];
  for (const part of accept.split(',')) {
    const [range = '', ...options] = part.split(';');
    const [type = '', subtype = ''] = range.trim().toLowerCase().split('/');
    let quality = 1;
    const parameters = new Map<string, string>();
    for (const option of options) {
      const equals = option.indexOf('=');
      const key = (equals === -1 ? option : option.slice(0, equals)).trim();
      const value = equals === -1 ? '' : option.slice(equals + 1).trim();
      if (key === 'q') quality = Number.isFinite(Number(value)) ? Number(value) : 1;
      else parameters.set(key, value);
    }
    clauses.push({ type, subtype, quality, parameters });
  }
  return clauses.sort((a, b) => b.quality - a.quality);
}
