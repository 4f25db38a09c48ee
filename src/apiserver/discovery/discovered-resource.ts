import type { ResourceDefinition, ResourceNames } from '../../registry/generic/strategy.ts';

/** A row of discovery behind a resource: `services/proxy`, `pods/log`. */
export interface SubresourceRow {
  /** The part behind the slash. */
  readonly name: string;
  readonly kind: string;
  readonly verbs: readonly string[];
  /** Group and version of the kind where they differ from the resource's (`autoscaling/v1` Scale). */
  readonly kindGroup?: string;
  readonly kindVersion?: string;
}

/** A resource as discovery and OpenAPI show it. */
export interface DiscoveredResource extends ResourceNames {
  /** Empty: the resource has subresources only (`pods/eviction` of a server without pods is no such case). */
  readonly verbs: readonly string[];
  readonly storageVersionHash?: string;
  /** OpenAPI component name. */
  readonly schema: string;
  readonly subresources: readonly SubresourceRow[];
  /** A custom resource; its documents differ in small things from those of built-in kinds. */
  readonly custom: boolean;
}

/** The resources that are served now. The same array while nothing changed: documents are built once per array. */
export type DiscoveredResources = () => readonly DiscoveredResource[];

const statusVerbs = ['get', 'patch', 'update'] as const;

/**
 * A resource with the subresources of its strategy; `more` are the others. A strategy's `finalize` takes PUT only, as
 * namespaces' does.
 */
export function discovered(
  definition: ResourceDefinition,
  more: readonly SubresourceRow[] = [],
  custom = false,
): DiscoveredResource {
  const { strategy, ...shown } = definition;
  const own = [
    ...(strategy.status === undefined ? [] : ['status']),
    ...(strategy.subresources?.keys() ?? []),
  ];
  const rows = own.map((name) => ({
    name,
    kind: definition.kind,
    verbs: name === 'finalize' ? ['update'] : statusVerbs,
  }));
  return { ...shown, subresources: [...rows, ...more], custom };
}
