import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  planSlices,
  type SlicesInput,
  type SlicesPlan,
} from '../../../../../src/controllers/service-endpoints/slices/plan.ts';
import { zoneShares } from '../../../../../src/controllers/service-endpoints/slices/plan-hints.ts';
import type { EndpointSlice } from '../../../../../src/objects/types/discovery.generated.ts';
import { node, pod, pods, type PodTraits, service } from '../samples.ts';

const time = '2026-01-02T03:04:05Z';
const trigger = 'endpoints.kubernetes.io/last-change-trigger-time';

function input(part: Partial<SlicesInput> = {}): SlicesInput {
  return {
    service: service(),
    pods: [],
    existing: [],
    placeOf: (name) =>
      name === 'n1' ? { zone: 'z1' } : name === 'n2' ? { zone: 'z2' } : name === 'n3' ? {} : undefined,
    zones: undefined,
    hadTopologyHints: false,
    triggerTime: undefined,
    maxPerSlice: 100,
    ...part,
  };
}

let serial = 0;

/** The slices after a plan's writes, as a server stores them. */
function apply(existing: readonly EndpointSlice[], plan: SlicesPlan): EndpointSlice[] {
  const gone = new Set(plan.delete.map((slice) => slice.metadata.name));
  const updates = new Map(plan.update.map((slice) => [slice.metadata.name, slice]));
  const kept = existing
    .filter((slice) => !gone.has(slice.metadata.name))
    .map((slice) => updates.get(slice.metadata.name) ?? slice);
  const made = plan.create.map((slice) => {
    serial++;
    const name = `${slice.metadata.generateName ?? ''}${serial}`;
    return { ...slice, metadata: { ...slice.metadata, name, uid: name, resourceVersion: '1' } };
  });
  return [...kept, ...made];
}

function writes(plan: SlicesPlan): number {
  return plan.create.length + plan.update.length + plan.delete.length;
}

function namesIn(slices: readonly EndpointSlice[]): string[] {
  return slices.flatMap((slice) => (slice.endpoints ?? []).map((e) => e.targetRef?.name ?? '')).sort();
}

describe('planSlices', () => {
  it('creates a slice with labels, owner and trigger time', () => {
    const svc = service({ clusterIP: 'None' }, { labels: { a: 'b', 'kubernetes.io/service-name': 'other' } });
    const plan = planSlices(input({ service: svc, pods: [pod('p')], triggerTime: time }));
    expect(plan.create).toEqual([
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: {
          generateName: 'web-',
          namespace: 'ns',
          labels: {
            a: 'b',
            'kubernetes.io/service-name': 'web',
            'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
            'service.kubernetes.io/headless': '',
          },
          annotations: { [trigger]: time },
          ownerReferences: [
            {
              apiVersion: 'v1',
              kind: 'Service',
              name: 'web',
              uid: 'service-uid',
              controller: true,
              blockOwnerDeletion: true,
            },
          ],
        },
        addressType: 'IPv4',
        endpoints: [
          {
            addresses: ['10.1.0.1'],
            conditions: { ready: true, serving: true, terminating: false },
            targetRef: { kind: 'Pod', namespace: 'ns', name: 'p', uid: 'uid-p' },
            nodeName: 'n1',
            zone: 'z1',
          },
        ],
        ports: [{ name: '', protocol: 'TCP', port: 80 }],
      },
    ]);
    expect(plan.update).toEqual([]);
    expect(plan.delete).toEqual([]);
  });

  const conditions: [string, PodTraits, boolean, [boolean, boolean, boolean]][] = [
    ['ready', {}, false, [true, true, false]],
    ['not ready', { ready: false }, false, [false, false, false]],
    ['terminating and serving', { terminating: true }, false, [false, true, true]],
    ['terminating', { terminating: true, ready: false }, false, [false, false, true]],
    ['not ready but published', { ready: false }, true, [true, false, false]],
    ['terminating but published', { terminating: true }, true, [true, true, true]],
  ];
  it.each(conditions)('sets the conditions of a pod that is %s', (_name, traits, publish, expected) => {
    const svc = service({ publishNotReadyAddresses: publish });
    const [slice] = planSlices(input({ service: svc, pods: [pod('p', traits)] })).create;
    const [ready, serving, terminating] = expected;
    expect(slice?.endpoints?.[0]?.conditions).toEqual({ ready, serving, terminating });
  });

  it('makes one placeholder per family without endpoints, and keeps it', () => {
    const svc = service({ ipFamilies: ['IPv4', 'IPv6'] });
    const plan = planSlices(input({ service: svc }));
    expect(plan.create.map(({ addressType, endpoints, ports }) => [addressType, endpoints, ports])).toEqual([
      ['IPv4', null, null],
      ['IPv6', null, null],
    ]);
    expect(writes(planSlices(input({ service: svc, existing: apply([], plan) })))).toBe(0);
  });

  it('keeps a placeholder whose labels differ by a label without a value only', () => {
    const existing = apply([], planSlices(input()));
    const labelled = (labels: Record<string, string>) =>
      writes(
        planSlices(
          input({ service: { ...service(), metadata: { ...service().metadata, labels } }, existing }),
        ),
      );
    expect(labelled({ team: '' })).toBe(0);
    expect(labelled({ team: 'a' })).toBe(1);
  });

  it('reuses the placeholder for the first endpoints and the last slice for the placeholder', () => {
    const empty = apply([], planSlices(input()));
    const filled = planSlices(input({ existing: empty, pods: [pod('p')] }));
    expect([filled.create.length, filled.update.length, filled.delete.length]).toEqual([0, 1, 0]);
    expect(filled.update[0]?.metadata.name).toBe(empty[0]?.metadata.name);
    const emptied = planSlices(input({ existing: apply(empty, filled) }));
    expect(emptied.update.map(({ endpoints, ports }) => [endpoints, ports])).toEqual([[null, null]]);
    expect(writes(emptied)).toBe(1);
  });

  it('puts pods without the named port into a slice without ports', () => {
    const svc = service({ ports: [{ port: 80, targetPort: 'http' }] });
    const with80 = pod('a', {
      spec: { containers: [{ name: 'c', ports: [{ name: 'http', containerPort: 8080 }] }] },
    });
    const plan = planSlices(input({ service: svc, pods: [with80, pod('b', { ips: ['10.1.0.2'] })] }));
    expect(plan.create.map((slice) => [slice.ports?.[0]?.port, namesIn([slice])])).toEqual([
      [8080, ['a']],
      [undefined, ['b']],
    ]);
  });

  it('orders ports as Kubernetes does, whatever the order of the Service and of slices made before', () => {
    const numbers = [80, 443, 9376];
    const ports = numbers.map((port) => ({ name: `p${port}`, port, protocol: 'TCP' }));
    const numbersOf = (slices: readonly EndpointSlice[]) =>
      slices.map((slice) => slice.ports?.map(({ port }) => port));
    const svc = service({ ports });
    const made = planSlices(input({ service: svc, pods: pods(2) }));
    const [order = []] = numbersOf(made.create);
    const turned = service({ ports: ports.toReversed() });
    expect(numbersOf(planSlices(input({ service: turned, pods: pods(2) })).create)).toEqual([order]);

    const existing = apply([], made).map((slice) => ({ ...slice, ports: slice.ports?.toReversed() ?? null }));
    expect(writes(planSlices(input({ service: svc, pods: pods(2), existing })))).toBe(0);
    const grown = planSlices(input({ service: svc, pods: pods(3), existing }));
    expect(numbersOf(grown.update)).toEqual([order]);
  });

  it('leaves out pods of unknown nodes, unless what is not ready is published', () => {
    const lost = pod('p', { node: 'gone' });
    const plan = planSlices(input({ pods: [lost] }));
    expect(plan.withoutNode).toEqual([lost]);
    expect(namesIn(plan.create)).toEqual([]);
    const published = planSlices(
      input({ pods: [lost], service: service({ publishNotReadyAddresses: true }) }),
    );
    expect(published.withoutNode).toEqual([]);
    expect(published.create[0]?.endpoints?.[0]).toMatchObject({ nodeName: 'gone' });
    expect(published.create[0]?.endpoints?.[0]).not.toHaveProperty('zone');
  });

  it('deletes slices of other owners and families, and creates none while the service is being deleted', () => {
    const [foreign] = apply(
      [],
      planSlices(input({ service: service({}, { uid: 'before' }), pods: [pod('p')] })),
    );
    const [v6] = apply([], planSlices(input({ service: service({ ipFamilies: ['IPv6'] }) })));
    if (foreign === undefined || v6 === undefined) throw new Error('no slices');
    const plan = planSlices(input({ existing: [foreign, v6], pods: [pod('p')] }));
    expect(plan.delete).toEqual([v6, foreign]);
    expect(plan.create.length).toBe(1);
    const leaving = service({}, { deletionTimestamp: time });
    expect(planSlices(input({ service: leaving, pods: [pod('p')] })).create).toEqual([]);
  });

  it('packs 250 endpoints into 100, 100 and 50, and adds to the slice that they fit most tightly', () => {
    const existing = apply([], planSlices(input({ pods: pods(250) })));
    expect(existing.map((slice) => slice.endpoints?.length)).toEqual([100, 100, 50]);
    const more = planSlices(input({ existing, pods: pods(260) }));
    expect(more.update.map((slice) => slice.endpoints?.length)).toEqual([60]);
    expect(writes(more)).toBe(1);
    const tooMany = planSlices(input({ existing, pods: pods(301) }));
    expect(tooMany.create.map((slice) => slice.endpoints?.length)).toEqual([51]);
    expect(writes(tooMany)).toBe(1);
  });

  it('fills slices that it rewrites anyway before it touches others', () => {
    const all = pods(250);
    const existing = apply([], planSlices(input({ pods: all })));
    const changed = all
      .map((p, i) => (i === 0 ? pod('p0', { ips: ['10.1.0.0'], ready: false }) : p))
      .filter((_, i) => i !== 1);
    const plan = planSlices(input({ existing, pods: [...changed, pod('new', { ips: ['10.9.0.1'] })] }));
    expect(plan.update.map((slice) => [slice.metadata.name, slice.endpoints?.length])).toEqual([
      [existing[0]?.metadata.name, 100],
    ]);
    expect(writes(plan)).toBe(1);
  });

  it('rewrites labels in place and repairs a slice that was emptied by hand', () => {
    const existing = apply([], planSlices(input({ pods: [pod('p')] })));
    const plan = planSlices(
      input({ existing, pods: [pod('p')], service: service({}, { labels: { new: 'x' } }) }),
    );
    expect(plan.update[0]?.metadata.labels).toMatchObject({ new: 'x' });
    const emptied = existing.map((slice) => ({ ...slice, endpoints: null }));
    expect(namesIn(planSlices(input({ existing: emptied, pods: [pod('p')] })).update)).toEqual(['p']);
  });

  describe('hints', () => {
    const two = [
      pod('a', { node: 'n1' }),
      pod('b', { node: 'n2', ips: ['10.1.0.2'] }),
      pod('c', { node: 'n3', ips: ['10.1.0.3'] }),
    ];
    const hintsOf = (slices: readonly EndpointSlice[]) =>
      slices.flatMap((s) => (s.endpoints ?? []).map((e) => e.hints));

    it.each([
      ['PreferClose', [{ forZones: [{ name: 'z1' }] }, { forZones: [{ name: 'z2' }] }, undefined]],
      ['PreferSameZone', [{ forZones: [{ name: 'z1' }] }, { forZones: [{ name: 'z2' }] }, undefined]],
      [
        'PreferSameNode',
        [
          { forZones: [{ name: 'z1' }], forNodes: [{ name: 'n1' }] },
          { forZones: [{ name: 'z2' }], forNodes: [{ name: 'n2' }] },
          { forNodes: [{ name: 'n3' }] },
        ],
      ],
      ['Other', [undefined, undefined, undefined]],
    ])('by trafficDistribution %s', (trafficDistribution, expected) => {
      const plan = planSlices(input({ service: service({ trafficDistribution }), pods: two }));
      expect(hintsOf(plan.create)).toEqual(expected);
      const settled = input({
        service: service({ trafficDistribution }),
        pods: two,
        existing: apply([], plan),
      });
      expect(writes(planSlices(settled))).toBe(0);
      const without = planSlices({ ...settled, service: service() });
      expect(hintsOf(without.update)).toEqual(
        expected.every((h) => h === undefined) ? [] : [undefined, undefined, undefined],
      );
    });

    const auto = service({}, { annotations: { 'service.kubernetes.io/topology-mode': 'Auto' } });
    const zones = zoneShares([node('n1', 'z1'), node('n2', 'z2')]);

    it('by capacity: endpoints move to the zone that lacks them', () => {
      const list = [...pods(5, { node: 'n1' }), pod('q', { node: 'n2', ips: ['10.2.0.1'] })];
      const plan = planSlices(input({ service: auto, pods: list, zones }));
      const counts = new Map<string | undefined, number>();
      for (const hint of hintsOf(plan.create)) {
        const zone = hint?.forZones?.[0]?.name;
        counts.set(zone, (counts.get(zone) ?? 0) + 1);
      }
      expect(Object.fromEntries(counts)).toEqual({ z1: 3, z2: 3 });
      expect(plan.events).toEqual([
        {
          type: 'Normal',
          reason: 'TopologyAwareHintsEnabled',
          message: 'Topology Aware Hints has been enabled, addressType: IPv4',
        },
      ]);
      const settled = input({
        service: auto,
        pods: list,
        zones,
        existing: apply([], plan),
        hadTopologyHints: true,
      });
      expect(writes(planSlices(settled))).toBe(0);
      const off = planSlices({ ...settled, service: service() });
      expect(hintsOf(off.update).every((hint) => hint === undefined)).toBe(true);
      expect(off.events.map(({ message }) => message)).toEqual([
        'Topology Aware Hints has been disabled, addressType: IPv4',
      ]);
    });

    it.each([
      [
        'Insufficient Node information: allocatable CPU or zone not specified on one or more nodes',
        [node('n1', undefined), node('n2', 'z2')],
        4,
      ],
      ['Insufficient number of endpoints (1 endpoints, 2 zones)', [node('n1', 'z1'), node('n2', 'z2')], 1],
      [
        'Unable to allocate minimum required endpoints to each zone without exceeding overload threshold (4 endpoints, 3 zones)',
        [node('n1', 'z1', '10'), node('n2', 'z2', '10'), node('n3', 'z3', '10')],
        4,
      ],
    ])('says why there are none: %s', (message, nodes, count) => {
      const plan = planSlices(input({ service: auto, pods: pods(count), zones: zoneShares(nodes) }));
      expect(plan.events).toEqual([
        { type: 'Warning', reason: 'TopologyAwareHintsDisabled', message: `${message}, addressType: IPv4` },
      ]);
      expect(hintsOf(plan.create).every((hint) => hint === undefined)).toBe(true);
    });
  });

  it('holds every wanted endpoint once, at most 100 a slice, settles in one step and writes few slices', () => {
    const step = fc.array(fc.record({ id: fc.nat(40), ready: fc.boolean(), port: fc.constantFrom(1, 2) }), {
      maxLength: 40,
    });
    fc.assert(
      fc.property(
        fc.array(step, { minLength: 1, maxLength: 6 }),
        fc.integer({ min: 1, max: 7 }),
        (steps, maxPerSlice) => {
          let existing: EndpointSlice[] = [];
          let before = new Map<string, string>();
          for (const list of steps) {
            const now = new Map(list.map(({ id, ready, port }) => [`p${id}`, `${ready} ${port}`]));
            const all = [...new Map(list.map((entry) => [entry.id, entry])).values()].map(
              ({ id, ready, port }) =>
                pod(`p${id}`, {
                  ips: [`10.1.0.${id}`],
                  ready,
                  spec: { containers: [{ name: 'c', ports: [{ name: 'http', containerPort: port }] }] },
                }),
            );
            const args = input({
              service: service({ ports: [{ port: 80, targetPort: 'http' }] }),
              pods: all,
              existing,
              maxPerSlice,
            });
            const plan = planSlices(args);
            const after = apply(existing, plan);
            expect(namesIn(after)).toEqual([...now.keys()].sort());
            for (const slice of after) expect(slice.endpoints?.length ?? 0).toBeLessThanOrEqual(maxPerSlice);
            expect(writes(planSlices({ ...args, existing: after }))).toBe(0);

            const names = new Set([...now.keys(), ...before.keys()]);
            const changes = [...names].filter((name) => now.get(name) !== before.get(name)).length;
            // A change touches at most the slice that it leaves and the one that it enters; one more for a placeholder.
            expect(writes(plan)).toBeLessThanOrEqual(2 * changes + 1);
            existing = after;
            before = now;
          }
        },
      ),
      { numRuns: 150 },
    );
  });
});
