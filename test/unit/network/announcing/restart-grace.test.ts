import { expect, test } from 'vitest';
import { decodeReport, encodeReport } from '../../../../src/network/announcing/agent-report.ts';
import { RestartGrace } from '../../../../src/network/announcing/restart-grace.ts';

const kept = { addresses: ['192.0.2.1', '192.0.2.2'], seconds: 120 };

test('what an agent leaves is not taken before its time is over, which counts from when its Lease was seen', () => {
  const grace = new RestartGrace();
  grace.observe('a', '7', kept, 1000);
  // The same Lease again, as of a watch that begins anew.
  grace.observe('a', '7', kept, 50_000);
  expect(grace.addresses(1000)).toEqual(kept.addresses);
  expect(grace.addresses(1000 + 120_999)).toEqual(kept.addresses);
  expect(grace.addresses(1000 + 121_000)).toEqual([]);
  grace.observe('a', '8', kept, 200_000);
  expect(grace.addresses(300_000)).toEqual(kept.addresses);
});

test('what an agent leaves is free when it is back, and when its Lease is gone', () => {
  const grace = new RestartGrace();
  grace.observe('a', '7', kept, 0);
  grace.observe('b', '8', { addresses: ['192.0.2.3'], seconds: 10 }, 0);
  grace.observe('a', '9', undefined, 10);
  expect(grace.addresses(20)).toEqual(['192.0.2.3']);
});

test('a report says what its agent leaves', () => {
  const report = { interfaces: [], sessions: [], refused: [], announced: [], voters: new Map(), kept };
  expect(decodeReport(encodeReport(report)).kept).toEqual(kept);
  expect(decodeReport('{"kept":{"addresses":["here",7,"192.0.2.9"],"seconds":"x"}}').kept).toEqual({
    addresses: ['192.0.2.9'],
    seconds: 0,
  });
  expect(decodeReport('{}').kept).toBeUndefined();
});
