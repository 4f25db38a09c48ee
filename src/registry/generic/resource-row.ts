import type { ResourceDefinition, Strategy } from './strategy.ts';

/** Differences from the default: a namespaced kind of version v1 with all verbs. */
type Differences = Partial<ResourceDefinition>;

/** The verbs of most kinds. */
export const allVerbs = [
  'create',
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'update',
  'watch',
] as const;

type RowMaker = (
  kind: string,
  plural: string,
  /** First 8 bytes of SHA-256 over `<group>/<storage version>/<Kind>`, base64. */
  storageVersionHash: string,
  strategy: Strategy,
  differences?: Differences,
) => ResourceDefinition;

/** @param goPackage as in the names of the OpenAPI components, with the prefix where that is not `api`. */
export function rowsOf(group: string, goPackage: string, version = 'v1'): RowMaker {
  const prefix = goPackage.includes('.') ? 'io.k8s' : 'io.k8s.api';
  return (kind, plural, storageVersionHash, strategy, differences = {}) => ({
    group,
    version,
    plural,
    singular: kind.toLowerCase(),
    kind,
    namespaced: true,
    shortNames: [],
    categories: [],
    verbs: allVerbs,
    schema: `${prefix}.${goPackage}.${version}.${kind}`,
    strategy,
    storageVersionHash,
    ...differences,
  });
}
