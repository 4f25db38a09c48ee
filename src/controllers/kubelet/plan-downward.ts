/** Fields of a Pod for its own containers: the downward API (pkg/fieldpath, pkg/api/v1/resource). */
import type { Container, Node, Pod, ResourceFieldSelector } from '../../objects/types/core.generated.ts';
import { parseQuantity } from '../../objects/quantity.ts';

/** A field of a Pod by its path; undefined for one that the downward API does not have. */
export function podField(pod: Pod, path: string): string | undefined {
  const { metadata, spec, status } = pod;
  const [, map, key] = /^metadata\.(annotations|labels)\['(.*)'\]$/.exec(path) ?? [];
  if (map === 'annotations') return metadata.annotations?.[key ?? ''] ?? '';
  if (map === 'labels') return metadata.labels?.[key ?? ''] ?? '';
  switch (path) {
    case 'metadata.name':
      return metadata.name ?? '';
    case 'metadata.namespace':
      return metadata.namespace ?? '';
    case 'metadata.uid':
      return metadata.uid ?? '';
    case 'metadata.annotations':
      return formatMap(metadata.annotations);
    case 'metadata.labels':
      return formatMap(metadata.labels);
    case 'spec.nodeName':
      return spec.nodeName ?? '';
    case 'spec.serviceAccountName':
      return spec.serviceAccountName ?? '';
    case 'status.hostIP':
      return status.hostIP ?? '';
    case 'status.hostIPs':
      return (status.hostIPs ?? []).map(({ ip }) => ip).join(',');
    case 'status.podIP':
      return status.podIP ?? '';
    case 'status.podIPs':
      return (status.podIPs ?? []).map(({ ip }) => ip).join(',');
    default:
      return undefined;
  }
}

/** `key="value"` by line, sorted. */
function formatMap(map: Readonly<Record<string, string>> = {}): string {
  return Object.entries(map)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${JSON.stringify(value)}\n`)
    .join('');
}

/**
 * The limit or request of a container, or its node's allocatable resource; in units of the divisor, rounded up.
 * Undefined for other resources.
 */
export function resourceField(
  { resource, divisor = '0' }: ResourceFieldSelector,
  { resources }: Container,
  node: Node,
): string | undefined {
  const [kind = '', ...rest] = resource.split('.');
  const name = rest.join('.');
  if ((kind !== 'limits' && kind !== 'requests') || name === '') return undefined;
  const own = resources?.[kind]?.[name];
  const fallback = kind === 'limits' ? node.status.allocatable?.[name] : undefined;
  const unit = parseQuantity(divisor).nanos;
  const nanos = parseQuantity(own ?? fallback ?? '0').nanos;
  const by = unit === 0n ? 1_000_000_000n : unit;
  return String((nanos + by - 1n) / by);
}

/** The container that a reference names; the first where it names none. */
export function containerNamed({ spec }: Pod, name: string | undefined): Container | undefined {
  const all = [...(spec.initContainers ?? []), ...(spec.containers ?? [])];
  return name === undefined ? spec.containers?.[0] : all.find((container) => container.name === name);
}
