import { describe, expect, test } from 'vitest';
import { matrixText, planText } from '../../../src/commands/trace.ts';
import type { Reach, ReachCell } from '../../../src/network/path/reach.ts';

const open: ReachCell = {
  verdict: 'open',
  deciders: [
    { verdict: 'open', message: 'no policy isolates the Pod', from: 'pod/shop/a', to: 'pod/shop/b:80' },
  ],
};
const denied: ReachCell = {
  verdict: 'denied',
  deciders: [
    {
      ...{ verdict: 'denied', object: 'NetworkPolicy shop/none', field: 'spec.ingress' },
      ...{ message: 'no rule matches', from: 'pod/shop/a', to: 'pod/shop/b:80' },
    },
  ],
};
const unasked: ReachCell = { verdict: 'unasked', deciders: [] };

describe('who reaches whom', () => {
  const names = Array.from({ length: 30 }, (_, index) => `deployment/shop/service-${index + 1}`);
  const matrix: Reach = {
    ...{ namespace: 'shop', protocol: 'TCP' },
    sources: names.map((name) => ({ name, count: 2 })),
    destinations: names.map((name) => ({ name, count: 2, port: 8080 })),
    cells: names.map((_, from) =>
      names.map((__, to) => (from === to ? open : to === 29 ? unasked : to % 2 === 0 ? denied : open)),
    ),
    total: { sources: 30, destinations: 30 },
  };

  test('is cut into tables that fit the terminal, with all columns', () => {
    for (const width of [60, 80, 200]) {
      const lines = matrixText(matrix, width).split('\n');
      const table = lines.filter((line) => !line.startsWith('X '));
      expect(table.filter((line) => line.length > width)).toEqual([]);
      const numbers = lines.filter((line) => line.includes('FROM')).flatMap((line) => line.match(/\d+/g));
      expect(numbers).toEqual(names.map((_, index) => String(index + 1)));
    }
  });

  test('has a row for each workload, its columns by name, and who decides', () => {
    const text = matrixText(matrix, 200);
    expect(text).toMatch(/^deployment\/service-2 +2 +X +\. +X +\. /m);
    expect(text).toMatch(/^30 +deployment\/service-30:8080$/m);
    expect(text).toContain('\n. open: nothing isolates the Pods, X denied\n');
    expect(text).toContain('\nX NetworkPolicy shop/none spec.ingress: no rule matches (435 cells)\n');
  });
});

test('a plan names the cells whose verdict changes, and counts those that others decide', () => {
  const change = { namespace: 'shop', source: 'deployment/shop/a', destination: 'deployment/shop/b:80' };
  const text = planText({
    changes: [
      { ...change, before: open, after: denied },
      { ...change, before: denied, after: denied },
    ],
    problems: ['NetworkPolicy shop/none: spec.podSelector selects no Pod that is there'],
  });
  expect(text).toMatch(/^NetworkPolicy shop\/none: spec\.podSelector selects no Pod/);
  expect(text).toMatch(
    /^deployment\/shop\/a +deployment\/shop\/b:80 +open +denied +NetworkPolicy shop\/none spec\.ingress: no rule matches$/m,
  );
  expect(text).toContain('1 more cell keeps its verdict, and is decided by others.\n');
  expect(planText({ changes: [], problems: [] })).toBe('No verdict changes.\n');
});
