import type { KubeObject, ObjectMeta } from '../../../objects/meta.ts';

const copied = ['topology.kubernetes.io/region', 'topology.kubernetes.io/zone'];

/**
 * Admission PodTopologyLabels: copies zone and region of the node to a bound Pod or its Binding.
 *
 * @param node undefined when there is no such node, which is no error.
 */
export function copyTopologyLabels(metadata: ObjectMeta, node: KubeObject | undefined): void {
  const labels = node?.metadata.labels ?? {};
  const found = copied.flatMap((key): [string, string][] => {
    const value = labels[key];
    return value === undefined ? [] : [[key, value]];
  });
  copyLabels(metadata, Object.fromEntries(found));
}

/** Adds missing labels. */
export function copyLabels(metadata: ObjectMeta, labels: Readonly<Record<string, string>>): void {
  if (Object.keys(labels).length > 0) metadata.labels = { ...labels, ...metadata.labels };
}
