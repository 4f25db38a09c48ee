/** What an answer may be written as. */
export type MediaType = 'application/json' | 'application/yaml';

/** The conversions of meta.k8s.io that a client can ask for with `as=`; "" is the object itself. */
export type Conversion = '' | 'Table' | 'PartialObjectMetadata' | 'PartialObjectMetadataList';

export interface Negotiated {
  readonly mediaType: MediaType;
  readonly as: Conversion;
}

/** The kinds of endpoint that differ in what they accept. */
export type Endpoint = 'object' | 'collection' | 'discovery' | 'status';

/**
 * Chooses the form of the answer from an Accept header.
 *
 * @throws {StatusError} 406
 */
export function negotiate(_accept: string | undefined, _endpoint: Endpoint): Negotiated {
  throw new Error('not built yet');
}

/** The form of a request body. @throws {StatusError} 415 */
export function bodyMediaType(_contentType: string | undefined): MediaType {
  throw new Error('not built yet');
}

export type PatchType = 'json' | 'merge' | 'strategic' | 'apply';

/** The patch type of a Content-Type. @throws {StatusError} 415 */
export function patchType(_contentType: string | undefined, _customResource: boolean): PatchType {
  throw new Error('not built yet');
}

/** Writes a JSON value as JSON (one line, newline at the end) or YAML (members sorted, as sigs.k8s.io/yaml). */
export function encode(_value: unknown, _mediaType: MediaType): string {
  throw new Error('not built yet');
}
