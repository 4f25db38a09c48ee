import type { IntOrPercent } from '../../objects/types/workloads.ts';

/**
 * A count, or a percentage of a total rounded up or down (`GetScaledValueFromIntOrPercent`). Other values, which
 * validation refuses, count as 0.
 */
export function scaledValue(
  value: IntOrPercent | undefined,
  total: number,
  round: 'up' | 'down',
  absent = 0,
): number {
  if (value === undefined) return absent;
  if (typeof value === 'number') return value;
  const percent = /^(\d{1,9})%$/.exec(value)?.[1];
  if (percent === undefined) return 0;
  const share = (Number(percent) * total) / 100;
  return round === 'up' ? Math.ceil(share) : Math.floor(share);
}
