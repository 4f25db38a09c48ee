import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { planEndpoints } from '../../../../../src/controllers/service-endpoints/endpoints/plan.ts';
import type { Endpoints } from '../../../../../src/objects/types/core.generated.ts';
import { pod, pods, type PodTraits, service } from '../samples.ts';

const time = '2026-01-02T03:04:05Z';

function planned(...args: Parameters<typeof planEndpoints>): Endpoints {
  const plan = planEndpoints(...args);
  if (plan.write === 'none') throw new Error('nothing was planned');
  return plan.endpoints;
}

/** The object as a server stores it. */
function stored(endpoints: Endpoints): Endpoints {
  return { ...endpoints, metadata: { ...endpoints.metadata, uid: 'e', resourceVersion: '9' } };
}

describe('planEndpoints', () => {
  it('writes labels, trigger time, addresses and ports', () => {
    const svc = service(
      { ports: [{ name: 'http', port: 80, targetPort: 8080, appProtocol: 'h2c' }] },
      { labels: { a: 'b' } },
    );
    expect(planEndpoints({ service: svc, pods: [pod('p')], existing: undefined, triggerTime: time })).toEqual(
      {
        write: 'create',
        endpoints: {
          apiVersion: 'v1',
          kind: 'Endpoints',
          metadata: {
            name: 'web',
            namespace: 'ns',
            labels: { a: 'b', 'endpoints.kubernetes.io/managed-by': 'endpoint-controller' },
            annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': time },
          },
          subsets: [
            {
              addresses: [
                {
                  ip: '10.1.0.1',
                  nodeName: 'n1',
                  targetRef: { kind: 'Pod', namespace: 'ns', name: 'p', uid: 'uid-p' },
                },
              ],
              ports: [{ name: 'http', port: 8080, protocol: 'TCP', appProtocol: 'h2c' }],
            },
          ],
        },
      },
    );
  });

  const cases: [
    string,
    PodTraits,
    Parameters<typeof service>[0],
    'addresses' | 'notReadyAddresses' | 'none',
  ][] = [
    ['a ready pod', {}, {}, 'addresses'],
    ['a pod that is not ready', { ready: false }, {}, 'notReadyAddresses'],
    ['a pod that is not ready, published', { ready: false }, { publishNotReadyAddresses: true }, 'addresses'],
    ['a terminating pod', { terminating: true }, {}, 'none'],
    ['a terminating pod, published', { terminating: true }, { publishNotReadyAddresses: true }, 'addresses'],
    ['a pod without address', { ips: [] }, {}, 'none'],
    ['a finished pod', { phase: 'Succeeded' }, {}, 'none'],
    ['a failed pod', { phase: 'Failed' }, {}, 'none'],
    ['a pending pod with address', { phase: 'Pending' }, {}, 'addresses'],
    ['a pod of the other family', { ips: ['fd00::1'] }, {}, 'none'],
    ['a pod without the named port', {}, { ports: [{ port: 80, targetPort: 'http' }] }, 'none'],
    ['no ports and an address of its own', {}, { ports: [] }, 'none'],
    ['no ports and headless', {}, { ports: [], clusterIP: 'None' }, 'addresses'],
  ];
  it.each(cases)('puts %s where it belongs', (_name, traits, spec, where) => {
    const input = {
      service: service(spec),
      pods: [pod('p', traits)],
      existing: undefined,
      triggerTime: time,
    };
    const { subsets = [] } = planned(input);
    expect(subsets.length).toBe(where === 'none' ? 0 : 1);
    for (const list of ['addresses', 'notReadyAddresses'] as const) {
      expect(subsets[0]?.[list]?.length ?? 0).toBe(list === where ? 1 : 0);
    }
  });

  it('takes the address of the first family, in canonical form', () => {
    const svc = service({ ipFamilies: ['IPv6', 'IPv4'] });
    const both = pod('p', { ips: ['10.1.0.1', 'FD00:0:0::1'] });
    const { subsets } = planned({ service: svc, pods: [both], existing: undefined, triggerTime: time });
    expect(subsets?.[0]?.addresses?.[0]?.ip).toBe('fd00::1');
  });

  it('gives pods with another number for a named port a subset of their own', () => {
    const numbered = (name: string, containerPort: number, ip: string) =>
      pod(name, {
        ips: [ip],
        spec: { containers: [{ name: 'c', ports: [{ name: 'http', containerPort }] }] },
      });
    const svc = service({ ports: [{ port: 80, targetPort: 'http' }] });
    const all = [numbered('a', 8080, '10.1.0.1'), numbered('b', 9090, '10.1.0.2')];
    const { subsets } = planned({ service: svc, pods: all, existing: undefined, triggerTime: time });
    expect(subsets?.map((subset) => subset.ports?.[0]?.port).sort()).toEqual([8080, 9090]);
  });

  it('keeps annotations of others and replaces labels', () => {
    const existing: Endpoints = {
      metadata: {
        name: 'web',
        namespace: 'ns',
        uid: 'e',
        resourceVersion: '5',
        labels: { mine: 'yes' },
        annotations: { note: 'x', 'endpoints.kubernetes.io/last-change-trigger-time': time },
      },
    };
    const plan = planned({ service: service(), pods: [pod('p')], existing, triggerTime: undefined });
    expect(plan.metadata).toEqual({
      name: 'web',
      namespace: 'ns',
      uid: 'e',
      resourceVersion: '5',
      labels: { 'endpoints.kubernetes.io/managed-by': 'endpoint-controller' },
      annotations: { note: 'x' },
    });
  });

  it('writes nothing when only order, headless label or target versions differ', () => {
    const svc = service({
      ports: [
        { name: 'a', port: 1 },
        { name: 'b', port: 2 },
      ],
    });
    const three = pods(3);
    const first = stored(planned({ service: svc, pods: three, existing: undefined, triggerTime: time }));
    const shuffled: Endpoints = {
      ...first,
      metadata: {
        ...first.metadata,
        labels: { ...first.metadata.labels, 'service.kubernetes.io/headless': '' },
      },
      subsets: (first.subsets ?? []).map((subset) => ({
        ports: [...(subset.ports ?? [])].reverse(),
        addresses: [...(subset.addresses ?? [])].reverse().map((address) => ({
          ...address,
          targetRef: { ...address.targetRef, resourceVersion: '1' },
        })),
      })),
    };
    expect(planEndpoints({ service: svc, pods: three, existing: shuffled, triggerTime: time })).toEqual({
      write: 'none',
    });
  });

  it('truncates at 1000 addresses, ready ones first, and takes the annotation away again', () => {
    const many = [
      ...pods(900),
      ...pods(300, { ready: false }).map((p) => ({
        ...p,
        metadata: { ...p.metadata, uid: `x${p.metadata.uid ?? ''}` },
      })),
    ];
    const cut = planned({ service: service(), pods: many, existing: undefined, triggerTime: time });
    expect(cut.subsets?.[0]?.addresses?.length).toBe(900);
    expect(cut.subsets?.[0]?.notReadyAddresses?.length).toBe(100);
    expect(cut.metadata.annotations).toMatchObject({ 'endpoints.kubernetes.io/over-capacity': 'truncated' });
    const again = { service: service(), pods: many, existing: stored(cut), triggerTime: undefined };
    expect(planEndpoints(again)).toEqual({ write: 'none' });
    const fits = planned({ ...again, pods: pods(10) });
    expect(fits.metadata.annotations).toBeUndefined();
  });

  it('never plans a second write, keeps every pod, and never more than 1000 addresses', () => {
    const anyPod = fc.record({
      ready: fc.boolean(),
      terminating: fc.boolean(),
      ips: fc.subarray(['10.1.0.1', '10.1.0.2', 'fd00::1'], { maxLength: 2 }),
      number: fc.constantFrom(8080, 9090, undefined),
    });
    fc.assert(
      fc.property(fc.array(anyPod, { maxLength: 30 }), fc.boolean(), (list, publish) => {
        const svc = service({
          publishNotReadyAddresses: publish,
          ports: [
            { name: 'a', port: 80, targetPort: 'http' },
            { name: 'b', port: 81, targetPort: 81 },
          ],
        });
        const all = list.map(({ number, ...traits }, i) =>
          pod(`p${i}`, {
            ...traits,
            ...(number === undefined
              ? {}
              : { spec: { containers: [{ name: 'c', ports: [{ name: 'http', containerPort: number }] }] } }),
          }),
        );
        const first = planned({ service: svc, pods: all, existing: undefined, triggerTime: time });
        const shown = new Set<string>();
        for (const subset of first.subsets ?? []) {
          for (const address of [...(subset.addresses ?? []), ...(subset.notReadyAddresses ?? [])]) {
            shown.add(address.targetRef?.name ?? '');
          }
        }
        const wanted = all.filter(
          (p) =>
            (publish || p.metadata.deletionTimestamp === undefined) &&
            (p.status.podIPs ?? []).some(({ ip }) => ip.startsWith('10.')),
        );
        expect([...shown].sort()).toEqual(wanted.map((p) => p.metadata.name).sort());
        const again = { service: svc, pods: all.toReversed(), existing: stored(first), triggerTime: time };
        expect(planEndpoints(again)).toEqual({ write: 'none' });
        // Whatever order the cache gives the Pods in, every controller writes the same text.
        expect(JSON.stringify(planned({ ...again, existing: undefined }))).toBe(JSON.stringify(first));
      }),
      { numRuns: 200 },
    );
  });
});
