import { describe, expect, it } from 'vitest';
import {
  isSameAllocation,
  planContainerResize,
  refuseResize,
  storedAllocation,
  wantedAllocation,
  withAllocation,
} from '../../../../src/controllers/kubelet/plan-resize.ts';
import type { Container, Pod } from '../../../../src/objects/types/core.generated.ts';
import { node, pod } from '../workloads/samples.ts';

const host = { ...node('n1'), status: { allocatable: { cpu: '2', memory: '1Gi' } } };

function asking(cpu: string, more: Partial<Container> = {}): Pod {
  const container = { name: 'main', image: 'i', resources: { requests: { cpu } }, ...more };
  return pod('p', { spec: { containers: [container] } });
}

describe('refuseResize', () => {
  it('has no room for what the whole node does not have', () => {
    expect(refuseResize(asking('2001m'), host, [])).toEqual({
      reason: 'Infeasible',
      message: "Node didn't have enough capacity: cpu, requested: 2001, capacity: 2000",
    });
  });

  it('waits for what other Pods have', () => {
    expect(refuseResize(asking('1500m'), host, [asking('501m')])).toEqual({
      reason: 'Deferred',
      message: "Node didn't have enough resource: cpu, requested: 1500, used: 501, capacity: 2000",
    });
    expect(refuseResize(asking('1500m'), host, [asking('500m')])).toBeUndefined();
  });
});

describe('an allocation', () => {
  const before = wantedAllocation(asking('1'));

  it('is the same when quantities are', () => {
    expect(isSameAllocation(before, wantedAllocation(asking('1000m')))).toBe(true);
    expect(isSameAllocation(before, wantedAllocation(asking('1001m')))).toBe(false);
    const limited = asking('1', { resources: { requests: { cpu: '1' }, limits: { memory: '1Gi' } } });
    expect(isSameAllocation(before, wantedAllocation(limited))).toBe(false);
  });

  it('stands for the resources of the spec', () => {
    const given = withAllocation(asking('2'), before);
    expect(given.spec.containers?.[0]?.resources).toEqual({ requests: { cpu: '1' } });
    const same = asking('1');
    expect(withAllocation(same, wantedAllocation(same))).toBe(same);
  });

  it('is read from the status where a resize waits', () => {
    const waiting = asking('2');
    const status = { name: 'main', ready: true, restartCount: 0, image: 'i', imageID: 'i' };
    const resources = { requests: { cpu: '1' } };
    waiting.status = { containerStatuses: [{ ...status, resources }] };
    expect(storedAllocation(waiting)).toBeUndefined();
    waiting.status.conditions = [{ type: 'PodResizePending', status: 'True', reason: 'Deferred' }];
    expect(storedAllocation(waiting)?.containers.get('main')).toBe(resources);
  });
});

describe('a container that runs', () => {
  const policies = [
    { resourceName: 'cpu', restartPolicy: 'NotRequired' },
    { resourceName: 'memory', restartPolicy: 'RestartContainer' },
  ];
  const container = (resources: Container['resources']): Container => ({
    ...{ name: 'main', resizePolicy: policies, ...(resources === undefined ? {} : { resources }) },
  });
  const actual = { requests: { cpu: '1', memory: '1Gi' }, limits: { memory: '1Gi' } };

  it.each([
    ['none', actual],
    ['none', { requests: { cpu: '1000m', memory: '1024Mi' }, limits: { memory: '1Gi' } }],
    ['in place', { ...actual, requests: { cpu: '2', memory: '1Gi' } }],
    ['in place', { ...actual, limits: { memory: '1Gi', cpu: '3' } }],
    ['restart', { ...actual, limits: { memory: '2Gi' } }],
    ['restart', { requests: { cpu: '2', memory: '2Gi' }, limits: { memory: '2Gi' } }],
  ])('%s for %j', (how, resources) => {
    expect(planContainerResize(container(resources), actual)).toBe(how);
  });
});
