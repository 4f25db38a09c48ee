import type { ResourceDefinition, ResourceNames } from '../../registry/generic/strategy.ts';

/** A subresource in discovery, such as `services/proxy` or `pods/log`. */
export interface SubresourceRow {
  /** The name after the slash. */
  readonly name: string;
  readonly kind: string;
  readonly verbs: readonly string[];
  /** Group and version of the kind where they differ from the resource's (`autoscaling/v1` Scale). */
  readonly kindGroup?: string;
  readonly kindVersion?: string;
}

/** A resource as discovery and OpenAPI show it. */
export interface DiscoveredResource extends ResourceNames {
  /** Empty for a resource that has subresources only. */
  readonly verbs: readonly string[];
  readonly storageVersionHash?: string;
  /** The name of its OpenAPI component. */
  readonly schema: string;
  readonly subresources: readonly SubresourceRow[];
  /** Whether it is a custom resource, whose documents differ in details from those of built-in kinds. */
  readonly custom: boolean;
}

/** The resources that are served now. The same array while nothing changes: documents are built once per array. */
export type DiscoveredResources = () => readonly DiscoveredResource[];

const statusVerbs = ['get', 'patch', 'update'] as const;

/**
 * A resource with the subresources of its strategy, of which `finalize` takes PUT only (`namespaces/finalize`).
 *
 * @param more further subresources.
 */
export function discovered(
  definition: ResourceDefinition,
  more: readonly SubresourceRow[],
  custom: boolean,
): DiscoveredResource {
  const { strategy, ...names } = definition;
  const own = [
    ...(strategy.status === undefined ? [] : ['status']),
    ...(strategy.subresources?.keys() ?? []),
  ];
  const rows = own.map((name) => ({
    name,
    kind: definition.kind,
    verbs: name === 'finalize' ? ['update'] : statusVerbs,
  }));
  return { ...names, subresources: [...rows, ...more], custom };
}
