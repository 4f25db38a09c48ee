import { describe, expect, it } from 'vitest';
import { AllocationState } from '../../../../src/controllers/service-allocation/allocation-state.ts';
import { planAllocation, type AllocationPlan } from '../../../../src/controllers/service-allocation/plan.ts';
import { claimAnnotation, viewOf } from '../../../../src/controllers/service-allocation/plan-view.ts';
import type { Service } from '../../../../src/objects/types/core.generated.ts';
import { broken, service } from './samples.ts';

const claimed = (text: string, resourceVersion = '5') => ({
  annotations: { [claimAnnotation]: text },
  resourceVersion,
});

/** Plans the first of these Services with the allocations of all. */
function plan(
  services: readonly [Service, ...Service[]],
  ownerOf: (address: string) => string | undefined = () => undefined,
): AllocationPlan {
  const allocations = new AllocationState({ first: 30_000, last: 30_003 });
  allocations.setCidrs([{ text: '10.0.0.0/29', ready: true }]);
  for (const each of services) allocations.set(viewOf(each), each.metadata.resourceVersion ?? '');
  return planAllocation({ service: services[0], allocations, cluster: ['IPv4'], ownerOf, random: () => 0 });
}

describe('planService', () => {
  it('claims missing values, and writes them when the cache shows the claim', () => {
    const first = plan([service('a', { type: 'NodePort' })]);
    expect(first).toEqual({ step: { do: 'claim', claim: { addresses: ['10.0.0.1'], ports: [30_000] } } });
    const then = plan([service('a', { type: 'NodePort' }, claimed('10.0.0.1,30000'))]);
    expect(then).toEqual({
      step: {
        do: 'write',
        addresses: ['10.0.0.1'],
        spec: {
          clusterIP: '10.0.0.1',
          clusterIPs: ['10.0.0.1'],
          ipFamilies: ['IPv4'],
          ipFamilyPolicy: 'SingleStack',
          ports: [{ port: 80, nodePort: 30_000 }],
        },
      },
    });
  });

  it('writes nothing for a Service that has all values', () => {
    const spec = {
      clusterIP: '10.0.0.1',
      clusterIPs: ['10.0.0.1'],
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
    };
    expect(plan([service('a', spec)])).toEqual({ step: { do: 'nothing' } });
  });

  it('reports the first full range, and keeps a report that is still true', () => {
    const wants = service('a', { type: 'NodePort' });
    const full = Array.from({ length: 6 }, (_, i) =>
      service(`full-${i}`, {
        type: 'NodePort',
        clusterIP: `10.0.0.${i + 1}`,
        ...(i < 4 ? { ports: [{ port: 80, nodePort: 30_000 + i }] } : {}),
      }),
    );
    const { problem: first, waitsFor } = plan([wants, ...full]);
    expect([first?.reason, waitsFor]).toEqual(['ClusterIPRangeFull', 'IPv4']);
    // The node ports were full first.
    const { problem: before } = plan([wants, ...full.slice(0, 4)]);
    expect(before?.reason).toBe('PortRangeFull');
    const { reason = '', message = '' } = before ?? {};
    const condition = { type: 'servicenet.dev/Allocated', status: 'False', lastTransitionTime: 'T' } as const;
    const reported: Service = { ...wants, status: { conditions: [{ ...condition, reason, message }] } };
    expect(plan([reported, ...full])).toMatchObject({ problem: before, waitsFor: 'port' });
    expect(plan([reported, ...full.slice(1)]).step.do).toBe('claim');
    // A node port is free, no address.
    const { problem: then } = plan([reported, service('b', { clusterIP: '10.0.0.1' }), ...full.slice(1)]);
    expect(then?.reason).toBe('ClusterIPRangeFull');
  });

  it('withdraws a claim of a value in use', () => {
    const mine = service('a', {}, claimed('10.0.0.1'));
    expect(plan([mine, service('b', { clusterIP: '10.0.0.1' })]).step.do).toBe('retreat');
    expect(plan([mine], () => '').step.do).toBe('retreat');
    expect(plan([mine], () => 'default/b').step.do).toBe('retreat');
    expect(plan([mine], () => 'default/a').step.do).toBe('write');
  });

  it('continues the earlier of two claims and withdraws the later one', () => {
    const early = service('a', {}, claimed('10.0.0.1', '5'));
    const late = service('b', {}, claimed('10.0.0.1', '12'));
    expect(plan([early, late]).step.do).toBe('wait');
    expect(plan([late, early]).step.do).toBe('retreat');
  });

  it('withdraws a claim that is invalid, out of range, or not what the Service needs', () => {
    expect(plan([service('a', {}, claimed('10.0.0.1,30001'))]).step.do).toBe('retreat');
    expect(plan([service('a', {}, claimed('10.0.0.1; drop'))]).step.do).toBe('retreat');
    expect(plan([service('a', {}, claimed('10.9.0.1'))]).step.do).toBe('retreat');
    expect(plan([service('a', { type: 'NodePort' }, claimed('10.0.0.1,40000'))]).step.do).toBe('retreat');
  });

  it('reports a value of two Services at the younger one', () => {
    const old = service('old', { clusterIP: '10.0.0.2' }, { creationTimestamp: '2025-01-01T00:00:00Z' });
    const young = service('young', { clusterIP: '10.0.0.2' });
    expect(plan([old, young]).problem).toBeUndefined();
    expect(plan([young, old]).problem).toMatchObject({
      reason: 'ClusterIPAlreadyAllocated',
      message: 'Cluster IP [IPv4]:10.0.0.2 was assigned to multiple services; please recreate service',
    });
  });

  it.each([
    [{ clusterIP: '192.0.2.1' }, 'ClusterIPOutOfRange'],
    [{ clusterIP: 'nonsense' }, 'ClusterIPNotValid'],
    [{ type: 'NodePort', ports: [{ port: 80, nodePort: 80 }] }, 'PortOutOfRange'],
    [{ ipFamilyPolicy: 'RequireDualStack' }, 'IPFamiliesNotValid'],
  ])('%o is %s', (spec, reason) => {
    expect(plan([service('a', spec)]).problem?.reason).toBe(reason);
  });

  it('reports which range is full, and claims nothing', () => {
    const ports = [1, 2, 3, 4, 5].map((port) => ({ port }));
    const result = plan([service('a', { type: 'NodePort', ports })]);
    expect(result.step.do).toBe('nothing');
    expect(result.waitsFor).toBe('port');
    expect(result.problem?.reason).toBe('PortRangeFull');
    const holders = Array.from({ length: 6 }, (_, i) => service(`s${i}`, { clusterIP: `10.0.0.${i + 1}` }));
    expect(plan([service('a', {}), ...holders]).waitsFor).toBe('IPv4');
  });

  it('removes values that the type does not allow', () => {
    const spec = {
      clusterIP: '10.0.0.1',
      clusterIPs: ['10.0.0.1'],
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
    };
    const ports = [{ port: 80, nodePort: 30_000 }];
    expect(plan([service('a', { ...spec, ports })]).step).toEqual({
      do: 'write',
      addresses: [],
      spec: { ports: [{ port: 80 }] },
    });
    expect(plan([service('a', { ...spec, type: 'ExternalName', externalName: 'x.example' })]).step).toEqual({
      do: 'write',
      addresses: [],
      spec: { clusterIP: null, clusterIPs: null, ipFamilies: null, ipFamilyPolicy: null },
    });
  });

  it.each([
    '{"metadata":{"name":"a"},"spec":{}}',
    '{"metadata":{"name":"a","annotations":7},"spec":{"ports":"x","clusterIPs":[1,null,{}],"type":[]}}',
    '{"metadata":{"name":"a","annotations":{"__proto__":1}},"spec":{"type":"NodePort","ports":[null,7,{"port":"x"}]}}',
    '{"metadata":{"name":"a"},"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":-1},{"port":81,"nodePort":1e99}]}}',
    '{"metadata":{"name":"a"},"spec":{"ipFamilies":[{}],"ipFamilyPolicy":3,"selector":[1]}}',
  ])('plans for what no schema allows: %s', (text) => {
    expect(() => plan([broken(text)])).not.toThrow();
  });

  it('plans a Service of 100,000 ports', () => {
    const ports = Array.from({ length: 100_000 }, (_, i) => ({ port: i }));
    expect(plan([service('a', { type: 'NodePort', ports })]).waitsFor).toBe('port');
  });
});
