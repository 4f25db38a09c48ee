import type { ResourceDefinition } from '../../registry/strategy.ts';

/** A row of discovery behind a resource: `services/proxy`. `/status` rows follow from the strategy and need none. */
export interface SubresourceRow {
  /** The part behind the slash. */
  readonly name: string;
  readonly kind: string;
  readonly verbs: readonly string[];
  /** Group and version of the kind where they differ from the resource's (`autoscaling/v1` Scale). */
  readonly kindGroup?: string;
  readonly kindVersion?: string;
}

/** A resource as discovery, OpenAPI and routing see it. */
export interface ServedResource {
  readonly definition: ResourceDefinition;
  readonly subresources: readonly SubresourceRow[];
}

/**
 * What is served now. It must give the same array while nothing changed: documents are built once per array.
 */
export type ServedResources = () => readonly ServedResource[];
