/** Taints against tolerations (k8s.io/component-helpers/scheduling/corev1, pkg/controller/tainteviction). */
import type { Taint, Toleration } from '../../objects/types/core.generated.ts';
import { parseTime } from '../../objects/time.ts';

/** True when the toleration matches this taint. */
function tolerates({ key = '', operator = '', value = '', effect = '' }: Toleration, taint: Taint): boolean {
  if (effect !== '' && effect !== taint.effect) return false;
  if (key !== '' && key !== taint.key) return false;
  return (
    operator === 'Exists' || ((operator === '' || operator === 'Equal') && value === (taint.value ?? ''))
  );
}

/** The taints of an effect that no toleration covers. */
export function untolerated(
  taints: readonly Taint[],
  tolerations: readonly Toleration[],
  effects: readonly string[],
): Taint[] {
  return taints.filter(
    (taint) =>
      effects.includes(taint.effect) && !tolerations.some((toleration) => tolerates(toleration, taint)),
  );
}

/**
 * When a Pod must leave its node because of NoExecute taints, in milliseconds since 1970: `now` when a taint is not
 * tolerated, undefined when all are for ever. The first toleration of a taint applies (`GetMatchingTolerations`).
 */
export function evictionTime(
  taints: readonly Taint[],
  tolerations: readonly Toleration[],
  now: number,
): number | undefined {
  let earliest: number | undefined;
  for (const taint of taints) {
    if (taint.effect !== 'NoExecute') continue;
    const matching = tolerations.find((toleration) => tolerates(toleration, taint));
    if (matching === undefined) return now;
    const { tolerationSeconds } = matching;
    if (tolerationSeconds === undefined) continue;
    const since = parseTime(taint.timeAdded ?? '') ?? now;
    const time = since + Math.max(0, tolerationSeconds) * 1000;
    earliest = earliest === undefined ? time : Math.min(earliest, time);
  }
  return earliest;
}
