import type { KubeObject } from '../../objects/meta.ts';
import type { ExpectedKind } from '../schema/decode-body.ts';
import type { FieldValidation } from '../schema/schema.ts';

/** The patch types but apply, which has a room of its own. */
export type PatchType = 'json' | 'merge' | 'strategic';

export interface PatchRequest {
  readonly type: PatchType;
  readonly bytes: Buffer;
  /** The stored object; not changed. */
  readonly live: KubeObject;
  readonly expected: ExpectedKind;
  readonly fieldValidation: FieldValidation;
}

export interface Patched {
  /** A new object: types checked, zero values normalised. Not defaulted. */
  readonly object: KubeObject;
  readonly warnings: readonly string[];
}

/** Applies a patch to the stored object. @throws {StatusError} 400, 413, 422 or 500 as kube-apiserver. */
export function patchObject(request: PatchRequest): Patched {
  throw new Error(`not yet: ${request.type}`);
}
