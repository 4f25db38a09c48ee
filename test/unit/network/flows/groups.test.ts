import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Flow, workloadText } from '../../../../src/network/flows/flow.ts';
import { FlowGrouping, historyText, mostGroups } from '../../../../src/network/flows/groups.ts';
import { outcomes } from '../../../../src/objects/flows/outcomes.ts';

const nowMs = Date.parse('2026-11-29T12:00:04.000Z');

function flowOf(id: number, more: Partial<Flow> = {}, agoMs = 1000): Flow {
  return {
    ...{ id, time: new Date(nowMs - agoMs).toISOString(), protocol: 'TCP', outcome: 'connected' },
    from: {
      ...{ kind: 'Pod', namespace: 'shop', name: `cart-${id}`, address: '10.0.0.1' },
      workload: { kind: 'Deployment', name: 'cart' },
    },
    service: { namespace: 'shop', name: 'catalog', port: 80, address: '10.96.0.7' },
    to: { kind: 'Pod', namespace: 'shop', name: 'catalog-1', address: '10.0.1.1', port: 8080 },
    ...more,
  };
}

function grouped(flows: readonly Flow[], atMs = nowMs) {
  const grouping = new FlowGrouping();
  for (const flow of flows) grouping.take(flow);
  return grouping.groups(atMs);
}

const denied = (id: number, packets: number, agoMs?: number): Flow =>
  flowOf(
    id,
    {
      ...{ outcome: 'dropped', packets },
      decidedBy: { object: 'NetworkPolicy shop/catalog', field: 'spec.ingress', message: 'no rule matches' },
    },
    agoMs,
  );

describe('groups of flows', () => {
  it('have what one workload opens to one place', () => {
    const { groups, total } = grouped([flowOf(1), flowOf(2), flowOf(3, {}, 20_000), denied(4, 3)]);
    expect(total).toBe(2);
    expect(groups).toMatchObject([
      {
        ...{ from: 'deploy/shop/cart', service: 'svc/shop/catalog:80', to: 'pod/shop/catalog-1' },
        ...{ outcome: 'dropped', count: 3 },
        decidedBy: 'NetworkPolicy shop/catalog spec.ingress: no rule matches',
        way: { from: 'deploy/shop/cart', to: 'svc/shop/catalog:80', protocol: 'TCP' },
      },
      { outcome: 'connected', count: 3, perSecond: 0.2, time: flowOf(1).time, decidedBy: '' },
    ]);
    // Five seconds before this moment are one column back, twenty are four or five.
    expect(groups[1]?.history.slice(-6)).toEqual([0, 1, 0, 0, 0, 2]);
  });

  it('count a flow once: where its outcome is another now, there', () => {
    const grouping = new FlowGrouping();
    grouping.take(flowOf(1, { outcome: 'opened' }));
    expect(grouping.groups(nowMs).groups).toMatchObject([{ outcome: 'opened', count: 1 }]);
    grouping.take(flowOf(1));
    grouping.take(flowOf(1));
    expect(grouping.groups(nowMs)).toMatchObject({
      groups: [{ outcome: 'connected', count: 1 }],
      total: 1,
    });
  });

  it('count packets that were denied since they were told last', () => {
    const grouping = new FlowGrouping();
    for (const [packets, agoMs] of [
      [1, 100_000],
      [4, 50_000],
      [9, 1000],
    ] as const)
      grouping.take(denied(1, packets, agoMs));
    const [group] = grouping.groups(nowMs).groups;
    expect(group?.count).toBe(9);
    expect(group?.history.filter((count) => count > 0)).toEqual([1, 3, 5]);
    // After a policy has changed, further packets are of who decides then.
    grouping.take({ ...denied(1, 10), decidedBy: { message: 'nothing denies it by now' } });
    expect(grouping.groups(nowMs).groups.map(({ count, decidedBy }) => [count, decidedBy])).toEqual([
      [9, 'NetworkPolicy shop/catalog spec.ingress: no rule matches'],
      [1, 'nothing denies it by now'],
    ]);
  });

  it('are forgotten after five minutes', () => {
    const grouping = new FlowGrouping();
    grouping.take(flowOf(1));
    grouping.take(flowOf(2, { outcome: 'opened' }, 290_000));
    expect(grouping.groups(nowMs).total).toBe(2);
    expect(grouping.groups(nowMs + 60_000).groups).toMatchObject([{ outcome: 'connected', perSecond: 0 }]);
    expect(grouping.groups(nowMs + 301_000).total).toBe(0);
  });

  it('come the worst first, then the busiest, and not all of very many', () => {
    const flows = outcomes.flatMap((outcome, index) => [
      flowOf(10 * index, { outcome }),
      ...[1, 2].map((more) =>
        flowOf(10 * index + more, {
          ...{ outcome, service: { namespace: 'shop', name: 'busy', port: 80, address: '10.96.0.8' } },
        }),
      ),
    ]);
    const order = grouped(flows).groups.map(({ outcome, count }) => `${outcome} ${count}`);
    expect(order).toEqual(
      ['dropped', 'refused', 'NXDOMAIN', 'opened', 'connected'].flatMap((each) => [`${each} 2`, `${each} 1`]),
    );
    const many = Array.from({ length: mostGroups + 7 }, (_, id) =>
      flowOf(id, { dns: { name: `name-${id}` } }),
    );
    const { groups, total } = grouped(many);
    expect([groups.length, total]).toEqual([mostGroups, mostGroups + 7]);
  });

  it('lead to the way of what they show', () => {
    const wayOf = (more: Partial<Flow>) => grouped([flowOf(1, more)]).groups[0]?.way;
    const { service: _, ...direct } = flowOf(1);
    const http = { method: 'GET', host: 'shop.example.com', path: '/x', status: 404, reason: 'NoRule' };
    for (const [flow, to] of [
      [flowOf(1, { http }), 'http://shop.example.com/x'],
      [flowOf(1, { dns: { name: 'catalog.shopp' } }), 'catalog.shopp:80'],
      [direct, 'pod/shop/catalog-1:8080'],
      [{ ...direct, to: { kind: 'outside', address: '2001:db8::1', port: 443 } }, '[2001:db8::1]:443'],
      [{ ...direct, to: { kind: 'Node', name: 'node-1', address: '10.0.0.9', port: 22 } }, 'node/node-1:22'],
    ] satisfies readonly (readonly [Flow, string])[])
      expect(grouped([flow]).groups[0]?.way?.to).toBe(to);
    expect(wayOf({ from: { kind: 'control-plane', address: '10.0.0.1' } })).toBeUndefined();
    expect(wayOf({ protocol: 'UDP' })?.protocol).toBe('UDP');
  });

  it('have each flow of five minutes once, in whatever order it was told', () => {
    const place = fc.record({
      ...{ id: fc.integer({ min: 0, max: 30 }), outcome: fc.constantFrom(...outcomes) },
      ...{ agoMs: fc.integer({ min: 0, max: 280_000 }), name: fc.constantFrom('a', 'b', 'c') },
    });
    fc.assert(
      fc.property(fc.array(place, { maxLength: 60 }), (places) => {
        const flows = places.map(({ id, outcome, agoMs, name }) =>
          flowOf(id, { outcome, dns: { name } }, agoMs),
        );
        const last = [...new Map(flows.map((flow) => [flow.id, flow])).values()];
        const expected = Map.groupBy(
          last,
          ({ from, dns, outcome }) => `${workloadText(from)} ${dns?.name ?? ''} ${outcome}`,
        );
        const { groups } = grouped(flows);
        const found = groups.map(({ from, service, outcome, count }) => [
          `${from} ${service.slice('dns/'.length)} ${outcome}`,
          count,
        ]);
        expect(Object.fromEntries(found)).toEqual(
          Object.fromEntries([...expected].map(([key, list]) => [key, list.length])),
        );
      }),
    );
  });
});

it('a history is drawn with its largest number as the highest bar', () => {
  const history = Array.from({ length: 60 }, (_, index) => (index < 6 ? 0 : index < 12 ? 1 : 8));
  expect(historyText(history)).toBe(' ▁████████');
  expect(historyText(Array<number>(60).fill(0))).toBe(' '.repeat(10));
});
