import { expect, test } from 'vitest';
import type { Outcome } from '../../../../../src/objects/flows/outcomes.ts';
import { isAskedFor, shownCells } from '../../../../../src/page/browser/views/reach-cells.ts';
import type { ReachAnswer } from '../../../../../src/page/messages.ts';
import type { FlowGroupRow } from '../../../../../src/view/rows/rows.ts';

const source = 'deployment/shop/cart';
const answer: ReachAnswer = {
  ...{ namespace: 'shop', protocol: 'TCP', total: { sources: 1, destinations: 2 } },
  sources: [{ name: source, count: 1 }],
  destinations: [
    { name: 'deployment/shop/catalog', count: 1, port: 8080 },
    { name: 'namespace/web', count: 1 },
  ],
  cells: [
    [
      { verdict: 'allowed', deciders: [] },
      { verdict: 'denied', deciders: [] },
    ],
  ],
};

function group(outcome: Outcome, count: number, more: Partial<FlowGroupRow> = {}): FlowGroupRow {
  return {
    ...{ key: `${outcome} ${count}`, time: '2026-11-29T12:00:00Z', from: 'deploy/shop/cart', service: '' },
    ...{ to: 'pod/shop/catalog-1', protocol: 'TCP', outcome, outcomeText: outcome, decidedBy: '', count },
    ...{ perSecond: 0, history: [] },
    cells: { from: [source, 'namespace/shop'], to: ['deployment/shop/catalog:8080', 'namespace/shop'] },
    ...more,
  };
}

test.each([
  ['connected', { used: 3 }],
  ['dropped', { tried: 3 }],
  ['refused', { tried: 3 }],
  ['opened', {}],
] as const)('a connection that was %s marks its cell', (outcome, marks) => {
  const [first, second] = shownCells(answer, [], [group(outcome, 3)]);
  expect(first).toEqual({
    ...{ key: `${source} deployment/shop/catalog:8080`, source, ...marks },
    ...{ destination: 'deployment/shop/catalog:8080', cell: answer.cells[0]?.[0] },
  });
  expect(second).not.toHaveProperty('tried');
  expect(second).not.toHaveProperty('used');
});

test('marks of all that came to a cell are added, of its protocol alone', () => {
  const udp = group('dropped', 7, { protocol: 'UDP' });
  const [first] = shownCells(
    answer,
    [],
    [group('dropped', 1), group('refused', 2), group('connected', 4), udp],
  );
  expect(first).toMatchObject({ tried: 3, used: 4 });
});

test('filters ask for what was tried in vain, and for what is allowed and was not asked for', () => {
  const asked = (flows: readonly FlowGroupRow[]) =>
    shownCells(answer, [], flows).map((cell) => [isAskedFor('tried', cell), isAskedFor('unused', cell)]);
  expect(asked([])).toEqual([
    [false, true],
    [false, false],
  ]);
  expect(asked([group('refused', 1)])).toEqual([
    [true, false],
    [false, false],
  ]);
});
