import { addressText, entriesOf, networkOf } from './plan-orphans.ts';
import { keyOf } from '../../objects/key.ts';
import type { IPPool } from '../../objects/types/attachments.ts';

/** The owners of an IPPool's addresses. */
export interface IPPoolReport {
  readonly name: string;
  /** A CIDR. */
  readonly range: string;
  /** Addresses that whereabouts would give without bounds and excludes, which the pool does not know; rounded above 2^53. */
  readonly total: number;
  readonly used: number;
  readonly free: number;
  /** By value. */
  readonly addresses: readonly {
    readonly address: string;
    readonly pod: string;
    readonly interface: string;
  }[];
}

/** Reports how IPPools are used; by name. */
export function reportIPPools(pools: readonly IPPool[]): readonly IPPoolReport[] {
  return [...pools]
    .sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
    .map((pool) => {
      const entries = [...entriesOf(pool)].sort((a, b) => (a.value < b.value ? -1 : 1));
      const total = Math.max(0, Number(networkOf(pool)?.size ?? 0n) - 2);
      return {
        name: pool.metadata.name ?? '',
        range: pool.spec.range,
        ...{ total, used: entries.length, free: Math.max(0, total - entries.length) },
        addresses: entries.map((entry) => ({
          address: addressText(pool, entry),
          ...{ pod: entry.podref, interface: entry.ifname },
        })),
      };
    });
}
