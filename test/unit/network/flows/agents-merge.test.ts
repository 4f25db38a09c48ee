import { describe, expect, it } from 'vitest';
import type { Flow, FlowEnd } from '../../../../src/network/flows/flow.ts';
import { FlowMerge } from '../../../../src/network/flows/agents.ts';

const client: FlowEnd = { kind: 'Pod', namespace: 'shop', name: 'client', address: '10.244.1.2' };
const closed: FlowEnd = { kind: 'Pod', namespace: 'shop', name: 'closed', address: '10.244.2.3', port: 8080 };
const service = { namespace: 'shop', name: 'closed', port: 80, address: '10.96.3.2' };

function at(seconds: number): string {
  return new Date(1_800_000_000_000 + seconds * 1000).toISOString();
}

function opened(id: number, seconds: number, change: Partial<Flow> = {}): Flow {
  const ends = { from: client, sourcePort: 40_000 + id, service, to: closed };
  return { id, time: at(seconds), ...ends, protocol: 'TCP', outcome: 'opened', ...change };
}

/** As the node of the destination has it: the packet came to it translated. */
function denied(id: number, seconds: number, packets: number): Flow {
  const decidedBy = { object: 'NetworkPolicy shop/deny-in', message: 'no rule matches' };
  const ends = { from: client, to: closed, protocol: 'TCP' } as const;
  return { id, time: at(seconds), ...ends, outcome: 'dropped', packets, decidedBy };
}

describe('flows of several agents', () => {
  it('keep apart what agents number alike, and together what one says again', () => {
    const merge = new FlowMerge();
    const ids = ['a', 'b', 'a', 'a'].map((agent, i) => {
      const id = i === 3 ? 2 : 1;
      const [flow] = merge.take(agent, [opened(id, 0, { outcome: 'connected', sourcePort: 1 })]);
      return flow?.id;
    });
    expect(ids[0]).toBe(ids[2]);
    expect(new Set(ids).size).toBe(3);
  });

  it.each([
    ['first', ['b', 'a']],
    ['last', ['a', 'b']],
  ])('have one for packets that another node denied, with the Service: told %s', (_, order) => {
    const merge = new FlowMerge();
    const told = order.flatMap((agent) =>
      merge.take(agent, [agent === 'a' ? opened(7, 0) : denied(3, 1, 2)]),
    );
    const latest = [...new Map(told.map((flow) => [flow.id, flow])).values()];
    expect(latest).toMatchObject([{ outcome: 'dropped', packets: 2, service, to: closed }]);
    // Both go on: more packets, and the next connection.
    const more = [...merge.take('b', [denied(3, 9, 4)]), ...merge.take('a', [opened(8, 8)])];
    expect(more).toMatchObject([{ id: latest[0]?.id, packets: 4, service }]);
  });

  it('have one that began after the last denied packet', () => {
    const merge = new FlowMerge();
    merge.take('b', [denied(3, 1, 2)]);
    expect(merge.take('a', [opened(9, 60)])).toMatchObject([{ outcome: 'opened' }]);
    expect(merge.take('a', [opened(9, 60, { outcome: 'connected' })])).toMatchObject([
      { outcome: 'connected' },
    ]);
  });

  it('have a connection from outside of the first node that tells it', () => {
    const merge = new FlowMerge();
    const from = { kind: 'outside', address: '198.51.100.7' } as const;
    const flow = opened(1, 0, { from, outcome: 'connected' });
    expect(merge.take('a', [flow])).toHaveLength(1);
    expect(merge.take('b', [flow])).toEqual([]);
    expect(merge.take('a', [flow])).toHaveLength(1);
    expect(merge.take('b', [{ ...flow, id: 2, sourcePort: 5 }])).toHaveLength(1);
  });
});
