import type { DiscoveredResource } from './discovered-resource.ts';
import type { RemoteDocumentV2 } from './openapi/merge-v2.ts';

/** A group version that an extension API server serves. */
export interface RemoteGroupVersion {
  readonly group: string;
  readonly version: string;
  /** The priority of the group. */
  readonly groupPriorityMinimum: number;
  /** Empty until the server has answered. */
  readonly resources: readonly DiscoveredResource[];
  /** Whether the server has answered and is available. */
  readonly isFresh: boolean;
  /** The address of its OpenAPI v3 document in the server's index; undefined for none. */
  readonly openApi: string | undefined;
  /** Its part of the server's OpenAPI v2 document; undefined for none. */
  readonly openApiV2: RemoteDocumentV2 | undefined;
}
