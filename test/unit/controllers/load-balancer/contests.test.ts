import { expect, test } from 'vitest';
import { Contests } from '../../../../src/controllers/load-balancer/contests.ts';
import { conditionType } from '../../../../src/controllers/load-balancer/present.ts';
import type { Service } from '../../../../src/objects/core.generated.ts';

function showing(...shown: string[]): Service {
  return {
    metadata: { namespace: 'n', name: 's' },
    spec: { type: 'LoadBalancer' },
    status: {
      loadBalancer: { ingress: shown.map((ip) => ({ ip })) },
      conditions: [
        {
          type: conditionType,
          status: 'True',
          lastTransitionTime: '2026-01-01T00:00:00Z',
          reason: 'Assigned',
          message: '192.0.2.1 from pool p',
        },
      ],
    },
  };
}
const intact = showing('192.0.2.1', '198.51.100.1');
const overwritten = showing('198.51.100.1');

test('each time that an address is taken out it is written back later, up to five minutes', () => {
  const contests = new Contests();
  const rests: number[] = [];
  let now = 1e12;
  expect(contests.judge('n/s', overwritten, now)).toEqual({ rest: 0, times: 1 });
  for (let times = 2; times < 13; times++) {
    expect(contests.judge('n/s', intact, now)).toEqual({ rest: 0, times: 0 });
    const { rest } = contests.judge('n/s', overwritten, now);
    rests.push(rest);
    expect(contests.judge('n/s', overwritten, now + rest / 2).rest).toBe(rest / 2);
    now += rest;
    expect(contests.judge('n/s', overwritten, now)).toEqual({ rest: 0, times });
  }
  expect(rests).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300].map((seconds) => seconds * 1000));
});

test('after a long peace it is written back at once, and so it is for a Service that comes anew', () => {
  const contests = new Contests();
  let now = 1e12;
  for (const wait of [0, 1000, 2000]) {
    now += wait;
    expect(contests.judge('n/s', overwritten, now).rest).toBe(0);
  }
  expect(contests.judge('n/s', overwritten, now + 100_000)).toEqual({ rest: 0, times: 1 });
  contests.forget('n/s');
  expect(contests.judge('n/s', overwritten, now + 100_000)).toEqual({ rest: 0, times: 1 });
});
