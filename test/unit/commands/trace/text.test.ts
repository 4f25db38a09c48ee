import { describe, expect, test } from 'vitest';
import { matrixText } from '../../../../src/commands/trace/text.ts';

describe('who reaches whom', () => {
  const names = Array.from({ length: 30 }, (_, index) => `deployment/service-${index + 1}`);
  const matrix = {
    ...{ pods: names.map((name) => `shop/${name}`), reached: [] },
    workloads: names.map((name) => ({ name, pods: ['a', 'b'], ports: [8080, 8443] })),
    reach: names.map((_, from) =>
      names.map((__, to) => (from === to ? 'all' : to === 29 ? 'unasked' : to % 2 === 0 ? 'some' : 'none')),
    ),
  } as const;

  test('is cut into tables that fit the terminal, with all columns', () => {
    for (const width of [60, 80, 200]) {
      const lines = matrixText(matrix, false, width).split('\n');
      expect(lines.slice(0, -2).filter((line) => line.length > width)).toEqual([]);
      const numbers = lines.filter((line) => line.includes('FROM')).flatMap((line) => line.match(/\d+/g));
      expect(numbers).toEqual(names.map((_, index) => String(index + 1)));
    }
  });

  test('has a row for each workload with its ports', () => {
    const text = matrixText(matrix, false, 200);
    expect(text).toMatch(/^2 +deployment\/service-2 +2 +8080,8443 +~ +\. +~ +X .* -$/m);
  });
});
