import { describe, expect, it } from 'vitest';
import { AllocationGrace } from '../../../../src/controllers/service-endpoints/timing.ts';
import type { Service, ServiceSpec } from '../../../../src/objects/types/core.generated.ts';

const service = (spec: ServiceSpec): Service => ({
  metadata: { name: 'a', namespace: 'ns' },
  spec,
  status: {},
});

describe('AllocationGrace', () => {
  it.each<ServiceSpec>([{ clusterIP: '10.0.0.1' }, { clusterIP: 'None' }, { ipFamilies: ['IPv6'] }])(
    'leaves none to a Service that has %j',
    (spec) => {
      expect(new AllocationGrace(() => 0).left('ns/a', service(spec))).toBe(0);
    },
  );

  it('counts from the first look at a Service without addresses, once', () => {
    let now = 100;
    const grace = new AllocationGrace(() => now);
    expect(grace.left('ns/a', service({}))).toBe(5000);
    now = 3100;
    expect(grace.left('ns/a', service({ clusterIP: '' }))).toBe(2000);
    expect(grace.left('ns/b', service({}))).toBe(5000);
    now = 9000;
    expect(grace.left('ns/a', service({}))).toBe(0);
    grace.forget('ns/a');
    expect(grace.left('ns/a', service({})), 'another Service of that name').toBe(5000);
  });
});
