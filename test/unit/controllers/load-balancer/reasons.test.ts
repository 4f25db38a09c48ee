import { loadBalancerReasons } from '../../../../src/objects/reasons.ts';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

test('docs/pools.md explains every reason, and no other', () => {
  const text = readFileSync(new URL('../../../../docs/pools.md', import.meta.url), 'utf8');
  const table = /\| Reason +\|[^\n]*\n\|[-| ]+\n((?:\|[^\n]*\n)+)/.exec(text)?.[1] ?? '';
  const explained = [...table.matchAll(/^\| `(\w+)`/gm)].map(([, reason]) => reason);
  expect(explained).toEqual([...loadBalancerReasons]);
});
