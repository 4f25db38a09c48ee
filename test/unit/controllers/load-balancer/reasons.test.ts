import { loadBalancerReasons } from '../../../../src/objects/reasons.ts';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { explain } from '../../../../src/controllers/load-balancer/reasons.ts';
import { request } from './samples.ts';

test('docs/pools.md explains every reason, and no other', () => {
  const text = readFileSync(new URL('../../../../docs/pools.md', import.meta.url), 'utf8');
  const table = /\| Reason +\|[^\n]*\n\|[-| ]+\n((?:\|[^\n]*\n)+)/.exec(text)?.[1] ?? '';
  const explained = [...table.matchAll(/^\| `(\w+)`/gm)].map(([, reason]) => reason);
  expect(explained).toEqual([...loadBalancerReasons]);
});

test('says once what two families are refused for', () => {
  const refused = (['IPv4', 'IPv6'] as const).map((family) => ({
    ...{ family, reason: 'NoMatchingPool' as const, message: 'there is no pool routed' },
  }));
  const { explanation } = explain(request('n/s'), refused, []);
  expect(explanation.message).toBe('there is no pool routed');
});
