import type { Binding, Pod } from '../../../objects/types/core.generated.ts';
import type { KubeObject, ObjectMeta } from '../../../objects/meta.ts';
import { conflict } from '../../../objects/status-errors.ts';
import { type FieldError, notSupported, required } from '../../validation/field-errors.ts';

/** A posted Binding. */
export type PostedBinding = KubeObject & Partial<Pick<Binding, 'target'>>;

/** The rules of a Binding (`ValidatePodBinding`). Its name and namespace are the Pod's. */
export function validateBinding({ target }: PostedBinding): FieldError[] {
  const { kind = '', name = '' } = target ?? {};
  const errors: FieldError[] = [];
  if (kind !== '' && kind !== 'Node') errors.push(notSupported('target.kind', kind, ['Node', '<empty>']));
  if (name === '') errors.push(required('target.name'));
  return errors;
}

/**
 * Applies `POST /binding` to a Pod: its node, the annotations and labels of the Binding, and the condition
 * PodScheduled.
 *
 * @param now RFC 3339.
 * @returns a new Pod; the stored one is not changed.
 * @throws {StatusError} 409 when the Pod is being deleted, is gated, or is on a node already.
 */
export function bindPod(pod: Pod, { metadata, target }: PostedBinding, now: string): Pod {
  const name = pod.metadata.name ?? '';
  const refuse = (why: string) => conflict({ group: '', resource: 'pods/binding' }, name, why);
  if (pod.metadata.deletionTimestamp !== undefined)
    throw refuse(`pod ${name} is being deleted, cannot be assigned to a host`);
  if ((pod.spec.nodeName ?? '') !== '') {
    throw refuse(`pod ${name} is already assigned to node ${JSON.stringify(pod.spec.nodeName)}`);
  }
  if ((pod.spec.schedulingGates ?? []).length > 0)
    throw refuse(`pod ${name} has non-empty .spec.schedulingGates`);
  const bound = structuredClone(pod);
  bound.spec.nodeName = target?.name ?? '';
  if (metadata.annotations !== undefined) {
    bound.metadata.annotations = { ...bound.metadata.annotations, ...metadata.annotations };
  }
  copyLabels(bound.metadata, metadata.labels ?? {});
  const scheduled = { type: 'PodScheduled', status: 'True', lastTransitionTime: now };
  const conditions = (bound.status.conditions ??= []);
  const at = conditions.findIndex(({ type }) => type === scheduled.type);
  conditions.splice(at === -1 ? conditions.length : at, 1, scheduled);
  // The nomination has no more use (ClearingNominatedNodeNameAfterBinding).
  delete bound.status.nominatedNodeName;
  return bound;
}

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
function copyLabels(metadata: ObjectMeta, labels: Readonly<Record<string, string>>): void {
  if (Object.keys(labels).length > 0) metadata.labels = { ...labels, ...metadata.labels };
}
