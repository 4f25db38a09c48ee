import { expect, test } from 'vitest';
import { comparePacket } from '../../../../src/network/path/packet.ts';
import type { Stage } from '../../../../src/network/path/stages.ts';
import type { Trace } from '../../../../src/network/path/trace.ts';

const service: Stage = { stage: 'service', verdict: 'allow', message: '' };
const policy = (verdict: Stage['verdict']): Stage => ({
  ...{ stage: 'ingress NetworkPolicy', verdict, object: 'NetworkPolicy shop/web', message: '' },
});
const plan = (reachable: boolean | undefined): Trace => ({
  reachable,
  stages: [service],
  endpoints: [
    {
      ...{ address: '10.0.0.1', port: 80, object: undefined, via: undefined, seenAs: '10.0.0.1', reachable },
      stages: [policy(reachable === false ? 'deny' : 'allow')],
    },
  ],
});

test.each([
  ['a plan that does not decide', undefined, 'dropped', [], undefined, undefined],
  ['what arrives as planned', true, 'connected', [], true, undefined],
  ['what is refused as planned', false, 'refused', [], true, undefined],
  ['what is dropped as planned', false, 'dropped', [], true, undefined],
  ['a policy that is not enforced', false, 'connected', [], false, 'ingress NetworkPolicy'],
  ['a Service that is not translated', true, 'dropped', ['connected'], false, 'service'],
  ['a Service that refuses', true, 'refused', ['dropped', 'connected'], false, 'service'],
  ['a port that nothing listens on', true, 'refused', ['refused'], false, 'target port'],
  ['what something else drops', true, 'dropped', ['dropped'], false, undefined],
] as const)('%s', (_what, reachable, outcome, direct, agrees, differsAt) => {
  expect(comparePacket(plan(reachable), outcome, direct)).toMatchObject({ outcome, agrees, differsAt });
});
