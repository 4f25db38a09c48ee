import type { KubeObject } from '../../objects/meta.ts';
import type { FieldValidation, StructSchema } from './schema.ts';

/** What an endpoint expects to read. */
export interface ExpectedKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly schema: StructSchema;
  /** Custom resources are decoded as unstructured objects: kind and apiVersion are required, other texts. */
  readonly custom?: boolean;
}

export interface BodyToDecode {
  readonly bytes: Buffer;
  /** `application/json` or `application/yaml`, parameters cut off; whatever else is refused before (415). */
  readonly contentType: string;
  readonly expected: ExpectedKind;
  readonly fieldValidation: FieldValidation;
}

export interface DecodedBody {
  /** Types checked, unknown fields dropped, zero values normalised; carries apiVersion and kind. Not defaulted. */
  readonly object: KubeObject;
  /** Texts for `Warning` headers (fieldValidation Warn). */
  readonly warnings: readonly string[];
}

/** Reads a request body. @throws {StatusError} 400 with kube-apiserver's wording. */
export function decodeBody(body: BodyToDecode): DecodedBody {
  throw new Error(`not yet: ${body.contentType}`);
}
