import { describe, expect, test } from 'vitest';
import { layOut } from '../../../../src/controllers/load-balancer/pools.ts';
import { intersectSpans, mergeSpans, type Span, subtractSpans } from '../../../../src/objects/address.ts';
import type { AddressPoolSpec } from '../../../../src/objects/types/servicenet.ts';
import { readPool } from '../../../../src/controllers/load-balancer/pools.ts';
import { parseAddressRange } from '../../../../src/allocation/address-range.ts';
import { formatAddress } from '../../../../src/objects/address.ts';

function pool(name: string, spec: AddressPoolSpec, created = 1): ReturnType<typeof readPool> {
  const creationTimestamp = new Date(created * 1000).toISOString().replace('.000', '');
  return readPool({ metadata: { name, creationTimestamp }, spec });
}

/** The addresses of a pool, as `first-last` texts. */
function spansOf(name: string, ...pools: ReturnType<typeof readPool>[]): string[] {
  const layout = layOut(
    pools.map((entry) => entry.pool),
    [],
  ).get(name);
  return (['IPv4', 'IPv6'] as const).flatMap((family) =>
    (layout?.spans[family] ?? []).map(
      (s) => `${formatAddress(family, s.first)}-${formatAddress(family, s.last)}`,
    ),
  );
}

describe('readPool', () => {
  test('reads CIDRs and ranges of both families, merged, without the excluded ones', () => {
    const read = pool('a', {
      addresses: ['192.0.2.0/29', '192.0.2.8-192.0.2.20', '2001:db8::/120'],
      exclude: ['192.0.2.4', '192.0.2.10-192.0.2.11', '2001:db8::80/121'],
    });
    expect(read.problems).toEqual([]);
    expect(spansOf('a', read)).toEqual([
      '192.0.2.0-192.0.2.3',
      '192.0.2.5-192.0.2.9',
      '192.0.2.12-192.0.2.20',
      '2001:db8::-2001:db8::7f',
    ]);
  });

  test.each([
    [
      'of each CIDR',
      { addresses: ['192.0.2.0/29', '192.0.2.16/31'] },
      ['192.0.2.1-192.0.2.6', '192.0.2.16-192.0.2.17'],
    ],
    [
      'of the subnet only',
      { addresses: ['192.0.2.240/28'], subnet: '192.0.2.0/24' },
      ['192.0.2.240-192.0.2.254'],
    ],
    ['no broadcast in IPv6', { addresses: ['2001:db8::/126'] }, ['2001:db8::1-2001:db8::3']],
  ])('avoids first and last %s', (_what, spec, expected) => {
    expect(spansOf('a', pool('a', { ...spec, avoidFirstLast: true }))).toEqual(expected);
  });

  test.each([
    ['0.0.0.0/0', 'too large'],
    ['::/0', 'too large'],
    ['10.0.0.0-12.0.0.0', 'too large'],
    ['192.0.2.9-192.0.2.1', 'ends before it begins'],
    ['192.0.2.1-2001:db8::1', 'different families'],
    ['192.0.2.010/32', 'neither'],
    ['192.0.2.7/24', 'its CIDR, 192.0.2.0/24'],
    ['x'.repeat(10_000), 'neither'],
  ])('refuses %s and goes on with the rest', (bad, word) => {
    const read = pool('a', { addresses: [bad, '192.0.2.0/31'] });
    expect(read.problems).toHaveLength(1);
    expect(read.problems[0]).toContain(word);
    expect(read.problems[0]?.length).toBeLessThan(250);
    expect(spansOf('a', read)).toEqual(['192.0.2.0-192.0.2.1']);
  });

  test('names every other invalid part and uses the default', () => {
    const read = pool('a', {
      sharing: 'always',
      shrinkPolicy: 'x',
      reuseDelay: 'soon',
      subnet: 'y',
      avoidFirstLast: true,
      serviceSelector: { matchExpressions: [{ key: 'a', operator: 'Like' }] },
      reservations: [
        { address: 'z', namespace: 'n', name: 's' },
        { address: '192.0.2.1', namespace: 'n', name: 's' },
        { address: '192.0.2.1', namespace: 'n', name: 't' },
      ],
    });
    expect(read.problems).toHaveLength(8);
    expect(read.pool).toMatchObject({
      sharing: 'by-key',
      shrinkPolicy: 'Retain',
      reuseDelayMs: 0,
      serviceSelector: 'nothing',
    });
    expect([...read.pool.reservations]).toEqual([['192.0.2.1', 'n/s']]);
  });
});

describe('layOut', () => {
  test('takes the addresses of an older pool from the younger one', () => {
    const old = pool('old', { addresses: ['192.0.2.0/28'] }, 1);
    const young = pool('young', { addresses: ['192.0.2.8-192.0.2.31'] }, 2);
    expect(spansOf('old', young, old)).toEqual(['192.0.2.0-192.0.2.15']);
    expect(spansOf('young', young, old)).toEqual(['192.0.2.16-192.0.2.31']);
    const layouts = layOut([young.pool, old.pool], []);
    expect(layouts.get('old')?.conflicts).toEqual([]);
    expect(layouts.get('young')?.conflicts).toEqual(['192.0.2.8-192.0.2.15 belongs to the older pool old']);
  });

  test('takes out the addresses of nodes and ServiceCIDRs, and names them', () => {
    const forbidden = Array.from({ length: 9 }, (_, i) => {
      const range = parseAddressRange(`192.0.2.${i * 2}/32`);
      if (range === undefined) throw new Error('bad range');
      return { range, owner: `node n${i}` };
    });
    const layout = layOut([pool('a', { addresses: ['192.0.2.0/28'] }).pool], forbidden).get('a');
    expect(layout?.conflicts).toHaveLength(8);
    expect(layout?.conflicts[0]).toBe('192.0.2.0 belongs to node n0');
    expect(layout?.spans.IPv4).toHaveLength(8);
  });
});

describe('spans', () => {
  test('are sets of addresses', () => {
    const setOf = (spans: readonly Span[]): number[] =>
      spans.flatMap(({ first, last }) =>
        Array.from({ length: Number(last - first) + 1 }, (_, i) => Number(first) + i),
      );
    let seed = 5;
    const next = (): number => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % 60;
    for (let round = 0; round < 500; round++) {
      const random = (): Span[] =>
        mergeSpans(
          Array.from({ length: next() % 6 }, () => {
            const first = BigInt(next());
            return { first, last: first + BigInt(next() % 9) };
          }),
        );
      const [a, b] = [random(), random()];
      const holes = new Set(setOf(b));
      expect(setOf(subtractSpans(a, b))).toEqual(setOf(a).filter((x) => !holes.has(x)));
      expect(setOf(intersectSpans(a, b))).toEqual(setOf(a).filter((x) => holes.has(x)));
    }
  });
});
