import type { AddressRange } from '../../allocation/address-range.ts';
import { formatAddress } from '../../objects/address.ts';
import type { IPFamily } from '../../objects/address.ts';
import type { Pool } from './pool.ts';
import { common, merged, without, type Span } from './spans.ts';

/** Addresses that no pool may give, and whose they are: `node a`, `Service CIDR 10.96.0.0/16`. */
export interface Forbidden {
  readonly range: AddressRange;
  readonly owner: string;
}

/** What of a pool is really its own. */
export interface PoolLayout {
  readonly spans: Readonly<Record<IPFamily, readonly Span[]>>;
  /** One sentence for each overlap that was refused. */
  readonly conflicts: readonly string[];
}

const FAMILIES: readonly IPFamily[] = ['IPv4', 'IPv6'];

/**
 * Gives each pool the part of its ranges that is neither excluded nor forbidden nor an older pool's. Only the
 * overlapping part is refused; the rest of the younger pool works, and the older one is not touched.
 */
export function layOut(pools: readonly Pool[], forbidden: readonly Forbidden[]): Map<string, PoolLayout> {
  const layouts = new Map<string, PoolLayout>();
  const older: { name: string; spans: Readonly<Record<IPFamily, readonly Span[]>> }[] = [];
  for (const pool of [...pools].sort(byAge)) {
    const conflicts: string[] = [];
    const spans: Record<IPFamily, readonly Span[]> = { IPv4: [], IPv6: [] };
    for (const family of FAMILIES) {
      const own = without(spansOf(pool.ranges, family), spansOf(pool.excluded, family));
      spans[family] = own;
      const refuse = (others: readonly Span[], owner: string): void => {
        const overlap = common(spans[family], others);
        if (overlap.length === 0) return;
        conflicts.push(`${textOf(family, overlap)} belongs to ${owner}`);
        spans[family] = without(spans[family], overlap);
      };
      for (const { range, owner } of forbidden) if (range.family === family) refuse([range], owner);
      for (const { name, spans: taken } of older) refuse(taken[family], `the older pool ${name}`);
    }
    older.push({ name: pool.name, spans });
    layouts.set(pool.name, { spans, conflicts });
  }
  return layouts;
}

function spansOf(ranges: readonly AddressRange[], family: IPFamily): Span[] {
  return merged(ranges.filter((range) => range.family === family));
}

function textOf(family: IPFamily, spans: readonly Span[]): string {
  const [span] = spans;
  if (span === undefined) return '';
  const first = formatAddress(family, span.first);
  const text = span.first === span.last ? first : `${first}-${formatAddress(family, span.last)}`;
  return spans.length === 1 ? text : `${text} and ${spans.length - 1} more`;
}

function byAge(a: Pool, b: Pool): number {
  return a.createdAt - b.createdAt || (a.name < b.name ? -1 : 1);
}
