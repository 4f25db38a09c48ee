import type { Service } from '../../../../src/objects/types/core.generated.ts';
import { expect, test } from 'vitest';
import { ConflictBackoff } from '../../../../src/controllers/load-balancer/status.ts';
import { loadBalancerReady } from '../../../../src/network/announcing/assigned-addresses.ts';

function withStatus(...ips: string[]): Service {
  return {
    metadata: { namespace: 'n', name: 's' },
    spec: { type: 'LoadBalancer' },
    status: {
      loadBalancer: { ingress: ips.map((ip) => ({ ip })) },
      conditions: [
        {
          type: loadBalancerReady,
          status: 'True',
          lastTransitionTime: '2026-01-01T00:00:00Z',
          reason: 'Assigned',
          message: '192.0.2.1 from pool p',
        },
      ],
    },
  };
}
const intact = withStatus('192.0.2.1', '198.51.100.1');
const overwritten = withStatus('198.51.100.1');

test('each time that an address is removed it is written again later, after at most five minutes', () => {
  const conflicts = new ConflictBackoff();
  const delays: number[] = [];
  let now = 1e12;
  expect(conflicts.delayOf('n/s', overwritten, now)).toEqual({ delayMs: 0, times: 1 });
  for (let times = 2; times < 13; times++) {
    expect(conflicts.delayOf('n/s', intact, now)).toEqual({ delayMs: 0, times: 0 });
    const { delayMs } = conflicts.delayOf('n/s', overwritten, now);
    delays.push(delayMs);
    expect(conflicts.delayOf('n/s', overwritten, now + delayMs / 2).delayMs).toBe(delayMs / 2);
    now += delayMs;
    expect(conflicts.delayOf('n/s', overwritten, now)).toEqual({ delayMs: 0, times });
  }
  expect(delays).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300].map((seconds) => seconds * 1000));
});

test('after a long time without a conflict it is written again at once, and so it is for a new Service', () => {
  const conflicts = new ConflictBackoff();
  let now = 1e12;
  for (const wait of [0, 1000, 2000]) {
    now += wait;
    expect(conflicts.delayOf('n/s', overwritten, now).delayMs).toBe(0);
  }
  expect(conflicts.delayOf('n/s', overwritten, now + 100_000)).toEqual({ delayMs: 0, times: 1 });
  conflicts.forget('n/s');
  expect(conflicts.delayOf('n/s', overwritten, now + 100_000)).toEqual({ delayMs: 0, times: 1 });
});
