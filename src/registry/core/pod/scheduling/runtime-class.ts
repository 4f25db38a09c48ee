import type { PodSpec, Toleration } from '../../../../objects/types/core.generated.ts';
import type { RuntimeClass } from '../../../../objects/types/node.generated.ts';
import { jsonEqual } from '../../../../objects/json.ts';
import type { KubeObject } from '../../../../objects/meta.ts';
import { compareQuantities } from '../../../../objects/quantity.ts';
import { forbidden } from '../../../../objects/status-errors.ts';
import type { ClusterReader } from '../../../generic/strategy.ts';

const otherOverhead = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
const noOverhead = 'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead';

/**
 * Admission RuntimeClass: the class of a Pod must exist; its overhead, node selector and tolerations are copied to the
 * Pod (`plugin/pkg/admission/runtimeclass`).
 *
 * @throws {StatusError} 403
 */
export function admitRuntimeClass({ metadata }: KubeObject, spec: PodSpec, cluster: ClusterReader): void {
  const refuse = (why: string) => forbidden({ group: '', resource: 'pods' }, metadata.name ?? '', why);
  const { runtimeClassName: name } = spec;
  const found: (KubeObject & Partial<RuntimeClass>) | undefined =
    name === undefined ? undefined : cluster.get('node.k8s.io', 'runtimeclasses', '', name);
  if (name !== undefined && found === undefined) {
    throw refuse(`pod rejected: RuntimeClass ${JSON.stringify(name)} not found`);
  }
  const { overhead, scheduling } = found ?? {};
  if (overhead === undefined && spec.overhead !== undefined) throw refuse(noOverhead);
  if (overhead !== undefined) {
    const { podFixed } = overhead;
    if (spec.overhead !== undefined && !sameAmounts(spec.overhead, podFixed ?? {}))
      throw refuse(otherOverhead);
    if (podFixed !== undefined) spec.overhead = { ...podFixed };
  }
  if (scheduling === undefined) return;
  const { nodeSelector = {}, tolerations = [] } = scheduling;
  const selector = { ...spec.nodeSelector };
  for (const [key, value] of Object.entries(nodeSelector)) {
    const own = Object.hasOwn(selector, key) ? selector[key] : undefined;
    if (own !== undefined && own !== value) {
      const classes = `runtimeClass.scheduling.nodeSelector[${key}] = ${value}`;
      throw refuse(`conflict: ${classes}; pod.spec.nodeSelector[${key}] = ${own}`);
    }
    selector[key] = value;
  }
  if (Object.keys(selector).length > 0) spec.nodeSelector = selector;
  spec.tolerations = mergeTolerations(spec.tolerations ?? [], tolerations);
}

function sameAmounts(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].every((name) => {
    const [left, right] = [a[name], b[name]];
    return left !== undefined && right !== undefined && compareQuantities(left, right) === 0;
  });
}

/** Both lists, without tolerations that another one covers (`util/tolerations` MergeTolerations). */
function mergeTolerations(first: readonly Toleration[], second: readonly Toleration[]): Toleration[] {
  const all = [...first, ...second];
  const merged: Toleration[] = [];
  all.forEach((toleration, i) => {
    const later = all.slice(i + 1).filter((other) => !jsonEqual(other, toleration));
    if ([...merged, ...later].some((other) => covers(other, toleration))) return;
    merged.push(toleration);
  });
  return merged;
}

/** True when the first toleration covers the second (`util/tolerations` isSuperset). */
function covers(wide: Toleration, narrow: Toleration): boolean {
  if (jsonEqual(wide, narrow)) return true;
  const { key = '', effect = '', operator = '', value = '', tolerationSeconds: seconds } = wide;
  if ((narrow.key ?? '') !== key && (key !== '' || operator !== 'Exists')) return false;
  if ((narrow.effect ?? '') !== effect && effect !== '') return false;
  if (effect === 'NoExecute' && seconds !== undefined) {
    if (narrow.tolerationSeconds === undefined || narrow.tolerationSeconds > seconds) return false;
  }
  if (operator === 'Exists') return true;
  return (
    (operator === '' || operator === 'Equal') && narrow.operator === 'Equal' && (narrow.value ?? '') === value
  );
}
