import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { planNodeStatus, planTaints } from '../../../../src/controllers/nodes/plan.ts';
import { NodeCidrs } from '../../../../src/controllers/nodes/plan.ts';
import { evictionTime, untolerated } from '../../../../src/controllers/nodes/plan.ts';
import { parseCidr } from '../../../../src/objects/address.ts';
import { formatTime } from '../../../../src/objects/formats/time.ts';
import { node, now } from '../workloads/samples.ts';

describe('NodeCidrs', () => {
  it.each([
    ['10.244.0.0/16', ['10.244.0.0/24', '10.244.1.0/24', '10.244.2.0/24']],
    ['10.0.128.0/23', ['10.0.128.0/24', '10.0.129.0/24', undefined]],
    ['fd00:10:244::/56', ['fd00:10:244::/64', 'fd00:10:244:1::/64', 'fd00:10:244:2::/64']],
  ])('cuts %s into parts', (cidr, parts) => {
    const cidrs = new NodeCidrs(cidr);
    expect(parts.map(() => cidrs.next())).toEqual(parts);
  });

  it.each(['10.244.0.1/16', '10.244.0.0/25', 'fd00::/65', 'x', '10.0.0.0'])('refuses %s', (cidr) => {
    expect(() => new NodeCidrs(cidr)).toThrow();
  });

  it('never gives a part twice, and always the lowest free one', () => {
    const operations = fc.array(fc.tuple(fc.constantFrom('next', 'occupy', 'release'), fc.nat(15)), {
      maxLength: 40,
    });
    fc.assert(
      fc.property(operations, (steps) => {
        const cidrs = new NodeCidrs('10.1.0.0/20');
        const taken = new Set<number>();
        const part = (index: number): string => `10.1.${index}.0/24`;
        for (const [what, index] of steps) {
          if (what === 'occupy') {
            cidrs.occupy(part(index));
            taken.add(index);
          } else if (what === 'release') {
            cidrs.release(part(index));
            taken.delete(index);
          } else {
            const free = Array.from({ length: 16 }, (_, i) => i).find((i) => !taken.has(i));
            expect(cidrs.next()).toBe(free === undefined ? undefined : part(free));
            if (free !== undefined) taken.add(free);
          }
        }
      }),
    );
  });

  it('does not care for parts of other networks', () => {
    const cidrs = new NodeCidrs('10.1.0.0/20');
    for (const foreign of ['10.0.0.0/24', '10.9.0.0/24', 'fd00::/64', 'x']) {
      cidrs.occupy(foreign);
      cidrs.release(foreign);
    }
    expect(cidrs.next()).toBe('10.1.0.0/24');
    expect(parseCidr(cidrs.next() ?? '')?.prefixLength).toBe(24);
  });
});

function down(name: string): ReturnType<typeof node> {
  const made = node(name);
  return { ...made, metadata: { ...made.metadata, annotations: { 'servicenet.dev/state': 'down' } } };
}

describe('planNodeStatus', () => {
  it('is ready, and unknown while it is down; the last heartbeat stays what it was', () => {
    const fresh = { ...node('a', {}, { podCIDRs: ['10.244.3.0/24', 'fd00:10:244:3::/64'] }), status: {} };
    const up = planNodeStatus(fresh, now);
    expect(up.conditions?.map(({ type, status }) => `${type}=${status}`)).toEqual([
      'MemoryPressure=False',
      'DiskPressure=False',
      'PIDPressure=False',
      'Ready=True',
    ]);
    expect(up.addresses).toEqual([
      { type: 'InternalIP', address: '172.18.244.5' },
      { type: 'InternalIP', address: 'fd00:172:18::5' },
      { type: 'Hostname', address: 'a' },
    ]);
    // Prometheus finds kubelets by it; the API server's default is 0.
    expect(up.daemonEndpoints).toEqual({ kubeletEndpoint: { Port: 10_250 } });
    const unset = { ...fresh, status: { daemonEndpoints: { kubeletEndpoint: { Port: 0 } } } };
    expect(planNodeStatus(unset, now).daemonEndpoints).toEqual(up.daemonEndpoints);
    const other = { daemonEndpoints: { kubeletEndpoint: { Port: 10_350 } } };
    expect(planNodeStatus({ ...fresh, status: other }, now)).toMatchObject(other);
    expect(planNodeStatus({ ...fresh, status: up }, now + 9000)).toEqual(up);
    // What an older servicenet wrote is renewed, what others wrote stays.
    const info = up.nodeInfo;
    if (info === undefined) throw new Error('no nodeInfo');
    for (const [version, shown] of [
      ['v1.36.0+servicenet', 'v1.37.2+servicenet'],
      ['v1.30.1', 'v1.30.1'],
    ] as const) {
      const status = { ...up, nodeInfo: { ...info, kubeletVersion: version } };
      expect(planNodeStatus({ ...fresh, status }, now).nodeInfo?.kubeletVersion).toBe(shown);
    }
    // nodeStatusReportFrequency: a kubelet says after five minutes that it is still there.
    const later = planNodeStatus({ ...fresh, status: up }, now + 300_000);
    expect(later.conditions?.map(({ lastHeartbeatTime }) => lastHeartbeatTime)).toEqual(
      up.conditions?.map(() => formatTime(now + 300_000)),
    );
    expect(later.conditions?.map(({ lastTransitionTime }) => lastTransitionTime)).toEqual(
      up.conditions?.map(() => formatTime(now)),
    );
    const failed = planNodeStatus({ ...down('a'), status: up }, now + 60_000);
    expect(failed.conditions?.[3]).toEqual({
      type: 'Ready',
      status: 'Unknown',
      lastHeartbeatTime: formatTime(now),
      lastTransitionTime: formatTime(now + 60_000),
      reason: 'NodeStatusUnknown',
      message: 'Kubelet stopped posting node status.',
    });
  });
});

describe('planTaints', () => {
  it('adds those of conditions, and leaves the users’ alone', () => {
    const own = { key: 'gpu', effect: 'NoSchedule' };
    const created = node(
      'a',
      {},
      { taints: [own, { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }] },
    );
    expect(planTaints(created, now)).toEqual([own]);
    const cordoned = planTaints(node('a', {}, { unschedulable: true, taints: [own] }), now);
    const timeAdded = formatTime(now);
    expect(cordoned).toEqual([
      own,
      { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule', timeAdded },
    ]);
    const failed = { ...down('a'), spec: { taints: cordoned } };
    const taints = planTaints(failed, now + 5000);
    expect(taints.map(({ key, effect }) => `${key}:${effect}`)).toEqual([
      'gpu:NoSchedule',
      'node.kubernetes.io/unreachable:NoSchedule',
      'node.kubernetes.io/unreachable:NoExecute',
    ]);
    expect(planTaints({ ...failed, spec: { taints } }, now + 9000)).toEqual(taints);
  });
});

describe('tolerations', () => {
  const taint = { key: 'k', value: 'v', effect: 'NoExecute', timeAdded: formatTime(now - 10_000) };

  it.each([
    [{ key: 'k', operator: 'Exists' }, true],
    [{ operator: 'Exists' }, true],
    [{ key: 'k', value: 'v' }, true],
    [{ key: 'k', operator: 'Equal', value: 'v', effect: 'NoExecute' }, true],
    [{ key: 'k', value: 'w' }, false],
    [{ key: 'other', operator: 'Exists' }, false],
    [{ key: 'k', operator: 'Exists', effect: 'NoSchedule' }, false],
  ])('%j tolerates: %s', (toleration, tolerated) => {
    expect(untolerated([taint], [toleration], ['NoExecute'])).toEqual(tolerated ? [] : [taint]);
    expect(untolerated([taint], [toleration], ['NoSchedule'])).toEqual([]);
  });

  it('says when a Pod must leave', () => {
    const until = (tolerationSeconds?: number): object => ({
      key: 'k',
      operator: 'Exists',
      ...(tolerationSeconds === undefined ? {} : { tolerationSeconds }),
    });
    expect(evictionTime([taint], [], now)).toBe(now);
    expect(evictionTime([taint], [until()], now)).toBeUndefined();
    expect(evictionTime([taint], [until(30), until(60)], now)).toBe(now + 20_000);
    expect(evictionTime([taint], [until(60), until(30)], now)).toBe(now + 50_000);
    expect(evictionTime([taint], [until(), until(30)], now)).toBeUndefined();
    expect(evictionTime([taint, { ...taint, key: 'other' }], [until(30)], now)).toBe(now);
    expect(evictionTime([{ ...taint, effect: 'NoSchedule' }], [], now)).toBeUndefined();
  });
});
