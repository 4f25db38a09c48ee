import type { KubeObject, ManagedFieldsEntry } from '../../objects/meta.ts';
import type { StructSchema } from '../schema/schema.ts';

export interface UpdateToTrack {
  readonly schema: StructSchema;
  /** The stored object; for a create undefined. */
  readonly live: KubeObject | undefined;
  /**
   * The object as the client wants it: decoded and defaulted, before the strategy has allocated anything
   * (kube-apiserver tracks at this moment, so a clusterIP that the server picks belongs to nobody).
   */
  readonly next: KubeObject;
  readonly manager: string;
  readonly subresource: string;
  /** `v1`, `discovery.k8s.io/v1` …: the version of the request. */
  readonly apiVersion: string;
  /** RFC 3339, UTC, whole seconds. */
  readonly now: string;
  /** The kind has a `/status` subresource: writes to the main resource own nothing of status, and vice versa. */
  readonly hasStatus: boolean;
}

/**
 * The managedFields of `next` after a write that is not an apply; undefined when there are none. Entries that do
 * not change keep their time; when nothing changes the entries of `live` are returned as they are.
 */
export function trackUpdate(update: UpdateToTrack): ManagedFieldsEntry[] | undefined {
  return update.live?.metadata.managedFields;
}
