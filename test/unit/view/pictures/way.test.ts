import { expect, test } from 'vitest';
import type { TracedDestination } from '../../../../src/network/path/report.ts';
import type { Hop } from '../../../../src/network/path/way.ts';
import { treePicture } from '../../../../src/view/pictures/tree-of-boxes.ts';
import { boxOf } from '../../../../src/view/pictures/way.ts';

test('ways that begin alike are one until they part', () => {
  const start: Hop = {
    ...{ at: 'Pod shop/cart', stages: [] },
    sends: { source: '10.1.1.2', destination: '10.96.0.10:80', changed: [] },
  };
  const hops = ['10.1.2.2', '10.1.3.2'].map((address): readonly Hop[] => [
    start,
    {
      at: 'node node-1',
      stages: [{ stage: 'service', verdict: 'allow', message: 'one of 2' }],
      sends: { source: '10.1.1.2', destination: `${address}:8080`, changed: ['destination'] },
    },
    { at: address, stages: [] },
  ]);
  const paths = hops.map((_, index) => ({
    ...{ address: '', port: 8080, object: undefined, via: undefined, seenAs: '', stages: [] },
    reachable: index === 0,
  }));
  const traced: TracedDestination = {
    ...{ destination: '', reachable: undefined, stages: [], endpoints: paths, hops },
  };
  const report = { proxyOptions: [], reachable: undefined, stages: [], traces: [traced] };
  expect(treePicture(boxOf(report, 'pod/shop/cart'))).toBe(
    [
      'Pod shop/cart',
      '└─ 10.1.1.2 → 10.96.0.10:80',
      '   node node-1',
      '   │  allow    service: one of 2',
      '   ├─ 10.1.1.2 → 10.1.2.2:8080, destination changed',
      '   │  10.1.2.2',
      '   │     allow    reachable',
      '   └─ 10.1.1.2 → 10.1.3.2:8080, destination changed',
      '      10.1.3.2',
      '         deny     not reachable',
      '',
    ].join('\n'),
  );
});
