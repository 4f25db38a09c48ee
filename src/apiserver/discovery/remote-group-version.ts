import type { DiscoveredResource } from './discovered-resource.ts';
import type { RemoteDocumentV2 } from './openapi/merge-v2.ts';

/** A group version that an extension API server serves. */
export interface RemoteGroupVersion {
  readonly group: string;
  readonly version: string;
  /** The priority of the group. */
  readonly groupPriorityMinimum: number;
  /** Empty where the server could not be reached yet. */
  readonly resources: readonly DiscoveredResource[];
  /** The server has answered, and is available. */
  readonly isFresh: boolean;
  /** The address of its OpenAPI 3 document, as the server's own index has it; undefined where it has none. */
  readonly openApi: string | undefined;
  /** Its part of the server's OpenAPI 2 document; undefined where it has none. */
  readonly openApiV2: RemoteDocumentV2 | undefined;
}
