import type { KubeObject } from '../../objects/meta.ts';
import type { ExpectedKind } from '../schema/decode-body.ts';
import type { FieldValidation } from '../schema/schema.ts';

export interface ApplyRequest {
  /** YAML or JSON (`application/apply-patch+yaml`). */
  readonly bytes: Buffer;
  /** The stored object, or for a create an object with only apiVersion, kind, metadata.name and namespace. */
  readonly live: KubeObject;
  readonly expected: ExpectedKind;
  readonly fieldValidation: FieldValidation;
  /** The manager's name: see manager-name.ts. */
  readonly manager: string;
  readonly force: boolean;
  /** "" for the main resource, "status" … */
  readonly subresource: string;
  /** RFC 3339, UTC, whole seconds. */
  readonly now: string;
  /** The kind has a `/status` subresource: see ResetFields in track-update.ts. */
  readonly hasStatus: boolean;
  /** Fills in defaults on decode (`Strategy.setDefaults`), in place. */
  setDefaults(object: KubeObject): void;
}

export interface Applied {
  /** The merged object with its new managedFields: decoded, defaulted. */
  readonly object: KubeObject;
  readonly warnings: readonly string[];
}

/** Server-side apply. @throws {StatusError} 400, 409 (conflicts), 422 or 500 as kube-apiserver. */
export function applyObject(request: ApplyRequest): Applied {
  throw new Error(`not yet: ${request.manager}`);
}
