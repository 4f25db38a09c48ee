import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { defaultLeaseTimes, leaseLastsMs } from '../../../../src/network/announcing/fence.ts';
import { ownerOf } from '../../../../src/network/announcing/membership.ts';
import {
  AgentNetwork,
  type AgentNetworkOptions,
  assigned,
  type Fault,
} from '../../../support/agent-network.ts';
import { runs } from '../../../support/runs.ts';

const { renewEveryMs } = defaultLeaseTimes;
const addresses = ['192.0.2.201', '192.0.2.202', '192.0.2.203'].map((address) => assigned(address));
const names = ['node-1', 'node-2', 'node-3', 'node-4'];

/** Longer than agents need to divide the addresses at the beginning. */
const settledMs = 6000;

function networkOf(count: number, options: Partial<AgentNetworkOptions> = {}): AgentNetwork {
  return new AgentNetwork({ nodes: names.slice(0, count), addresses, ...options });
}

/** The node that has an address, by itself. */
function owner(network: AgentNetwork, address: string): string {
  const [node = ''] = network.holders(address);
  expect(network.holders(address)).toEqual([node]);
  return node;
}

const everywhere = (of: Fault['of'], fromMs: number, lastsMs: number, count = 3): readonly Fault[] =>
  names.slice(0, count).map((node) => ({ node, of, fromMs, lastsMs }));

const faults = fc.array(
  fc.record({
    node: fc.constantFrom(...names),
    of: fc.constantFrom('api', 'watch', 'heartbeats', 'pause', 'dead' as const),
    fromMs: fc.integer({ min: 0, max: 20_000 }),
    lastsMs: fc.oneof(fc.integer({ min: 50, max: 4000 }), fc.integer({ min: 4000, max: 30_000 })),
  }),
  { minLength: 1, maxLength: 12 },
);
const delaysMs = fc.array(
  fc.oneof({ weight: 6, arbitrary: fc.integer({ min: 1, max: 60 }) }, fc.integer({ min: 60, max: 900 })),
  { minLength: 5, maxLength: 40 },
);
/** A renewal is seen before the API server counts as lost. */
const quickMs = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 5, maxLength: 40 });
const numRuns = runs(10, 60);

describe('agents that lose the API server, messages and time', () => {
  test('have an address twice for no longer than one may have it without a renewal, however late all comes', () => {
    fc.assert(
      fc.property(faults, delaysMs, (wrong, late) => {
        const network = networkOf(4, { faults: wrong, delaysMs: late });
        network.runUntil(30_000);
        for (const [address, { shared }] of network.seen)
          expect(shared, address).toBeLessThanOrEqual(leaseLastsMs + renewEveryMs + 4 * Math.max(...late));
      }),
      { numRuns },
    );
  });

  test('have it twice only while it moves between two that renew their Leases', () => {
    fc.assert(
      fc.property(faults, quickMs, (wrong, late) => {
        const network = networkOf(4, { faults: wrong, delaysMs: late });
        network.runUntil(30_000);
        for (const [address, { stalest }] of network.seen)
          expect(stalest, address).toBeLessThan(leaseLastsMs);
      }),
      { numRuns },
    );
  });

  test('have each address once, where all plan it, when all is well again', () => {
    fc.assert(
      fc.property(faults, delaysMs, (wrong, late) => {
        const network = networkOf(4, {
          faults: wrong.map((fault) => ({
            ...fault,
            lastsMs: Math.min(fault.lastsMs, 20_000 - fault.fromMs),
          })),
          delaysMs: late.map((milliseconds) => Math.min(milliseconds, 100)),
        });
        network.runUntil(30_000);
        for (const { address } of addresses)
          expect(network.holders(address)).toEqual([ownerOf(address, names)]);
      }),
      { numRuns },
    );
  });

  test.each<[string, readonly Fault[], number]>([
    ['lose nothing while all have lost the API server, and consent', everywhere('api', 6000, 20_000), 0],
    [
      'lose nothing where some lose it a moment earlier, and others have it back first',
      everywhere('api', 6000, 15_000).map((fault, n) => ({
        ...fault,
        fromMs: 6000 + 100 * n,
        lastsMs: 15_000 + 300 * n,
      })),
      0,
    ],
    [
      'have their addresses back within 3 s after one of them has died',
      [{ node: 'node-1', of: 'dead', fromMs: 6000, lastsMs: 30_000 }],
      3000,
    ],
    ['and after one stands still', [{ node: 'node-1', of: 'pause', fromMs: 6000, lastsMs: 10_000 }], 3000],
    [
      'and after one has lost the API server',
      [{ node: 'node-1', of: 'api', fromMs: 6000, lastsMs: 30_000 }],
      3000,
    ],
    [
      'let go when no heartbeat arrives, and no node has the API server',
      [...everywhere('api', 6000, 10_000), ...everywhere('heartbeats', 6000, 10_000)],
      10_000,
    ],
  ])('%s', (_, wrong, longest) => {
    const own = ['192.0.2.201', '192.0.2.202', '192.0.2.203', '192.0.2.204', '192.0.2.205'].map((address) =>
      assigned(address),
    );
    const network = networkOf(3, { faults: wrong, addresses: own });
    network.runUntil(settledMs);
    // The node that fails has some of them.
    expect(own.map(({ address }) => owner(network, address))).toContain('node-1');
    network.runUntil(30_000);
    for (const [address, { away, shared, stalest }] of network.seen) {
      expect(away, address).toBeLessThanOrEqual(longest);
      expect(shared, address).toBeLessThan(500);
      expect(stalest, address).toBeLessThan(leaseLastsMs);
    }
  });

  test('let go where consents come from another address than that of the node', () => {
    const network = networkOf(3, { faults: everywhere('api', 6000, 20_000), consentsFrom: '192.0.2.99' });
    network.runUntil(settledMs);
    expect(addresses.map(({ address }) => network.holders(address).length)).toEqual([1, 1, 1]);
    network.runUntil(20_000);
    expect(addresses.flatMap(({ address }) => network.holders(address))).toEqual([]);
  });

  test.each<['hold' | 'withdraw', boolean]>([
    ['hold', true],
    ['withdraw', false],
  ])('%s their addresses without the API server, as they are told: %s', (onAPILoss, isHeld) => {
    const network = networkOf(3, { onAPILoss, faults: everywhere('api', settledMs, 30_000) });
    network.runUntil(settledMs + leaseLastsMs + 300);
    for (const { address } of addresses) expect(network.holders(address)).toHaveLength(isHeld ? 1 : 0);
    network.runUntil(settledMs + 30_000 + 5000);
    for (const { address } of addresses) expect(network.holders(address)).toHaveLength(1);
  });

  test('one alone holds without the API server, also after a long pause', () => {
    const network = networkOf(1, {
      faults: [
        { node: 'node-1', of: 'api', fromMs: settledMs, lastsMs: 60_000 },
        { node: 'node-1', of: 'pause', fromMs: 20_000, lastsMs: 10_000 },
      ],
    });
    network.runUntil(19_999);
    expect(network.holders('192.0.2.201')).toEqual(['node-1']);
    network.runUntil(31_000);
    expect(network.holders('192.0.2.201')).toEqual(['node-1']);
  });
});

describe('agents that end', () => {
  test('leave their addresses to others within 0.5 s, which have them before', () => {
    for (const leaving of names) {
      const network = networkOf(4);
      network.runUntil(settledMs);
      const begun = network.nowMs;
      network.machine(leaving).leave();
      while (network.machine(leaving).isRunning) network.runUntil(network.nowMs + 10);
      expect(network.nowMs - begun, leaving).toBeLessThanOrEqual(500);
      for (const [address, { away }] of network.seen) {
        expect(owner(network, address)).not.toBe(leaving);
        expect(away, address).toBe(0);
      }
      network.machine(leaving).start();
      network.runUntil(network.nowMs + settledMs);
      for (const [address, { away }] of network.seen) {
        expect(owner(network, address)).toBe(ownerOf(address, names));
        expect(away, address).toBe(0);
      }
    }
  });

  test('leave what no other node can take for their restart, and no other takes it meanwhile', () => {
    const [one] = addresses;
    const address = one?.address ?? '';
    const network = networkOf(2, {
      addresses: [assigned(address, { localNodes: new Set(['node-1']) })],
      restartGraceSeconds: 20,
    });
    network.runUntil(settledMs);
    expect(owner(network, address)).toBe('node-1');
    network.machine('node-1').leave();
    network.runUntil(settledMs + 4000);
    expect(network.machine('node-1').isRunning).toBe(false);
    network.assign([assigned(address)]);
    network.runUntil(settledMs + 15_000);
    expect(network.holders(address)).toEqual(['node-1']);
    network.runUntil(settledMs + 30_000);
    expect(network.holders(address)).toEqual(['node-2']);
    expect(network.seen.get(address)?.shared).toBe(0);
  });

  test('keep their addresses over a restart in time; without a grace they are gone', () => {
    for (const [restartGraceSeconds, away] of [
      [20, 0],
      [0, 5000],
    ] as const) {
      const network = networkOf(1, { restartGraceSeconds });
      network.runUntil(settledMs);
      network.machine('node-1').leave();
      network.runUntil(settledMs + 5000);
      expect(network.machine('node-1').isRunning).toBe(false);
      network.machine('node-1').start();
      network.runUntil(settledMs + 15_000);
      for (const [address, seen] of network.seen) {
        expect(network.holders(address)).toEqual(['node-1']);
        if (away === 0) expect(seen.away, address).toBe(0);
        else expect(seen.away, address).toBeGreaterThan(away - 1000);
      }
    }
  });

  test('give the Lease back once, and no renewal on its way takes it again', () => {
    for (let at = settledMs; at < settledMs + renewEveryMs; at += 10) {
      const network = networkOf(2, { delaysMs: [40] });
      network.runUntil(at);
      network.machine('node-1').leave();
      network.runUntil(at + 3000);
      expect(network.machine('node-1').isRunning).toBe(false);
      expect(network.stored.get('node-1')?.acquired).toBe(undefined);
    }
  });
});

describe('an address that no other node can announce', () => {
  const address = '192.0.2.201';
  const on = (...nodes: readonly string[]) => [assigned(address, { localNodes: new Set(nodes) })];
  const sole = { addresses: on('node-1'), restartGraceSeconds: 120 };
  const fault = (of: Fault['of'], lastsMs: number): readonly Fault[] => [
    { node: 'node-1', of, fromMs: settledMs, lastsMs },
  ];

  test.each<Fault['of']>(['pause', 'api', 'watch', 'dead'])('stays where it is for a while: %s', (of) => {
    const network = networkOf(3, { ...sole, faults: fault(of, 20_000) });
    network.runUntil(settledMs);
    expect(owner(network, address)).toBe('node-1');
    network.runUntil(settledMs + 40_000);
    expect(owner(network, address)).toBe('node-1');
    expect(network.seen.get(address)).toMatchObject({ away: 0, shared: 0 });
  });

  test('goes when its time is over, and comes again', () => {
    const network = networkOf(3, { ...sole, faults: fault('pause', 50_000) });
    network.runUntil(settledMs + 36_000);
    expect(network.holders(address)).toEqual([]);
    network.runUntil(settledMs + 60_000);
    expect(owner(network, address)).toBe('node-1');
  });

  test('is taken by another node after its time, and not before', () => {
    for (const wrong of ['pause', 'dead', 'api'] as const) {
      const network = networkOf(3, { ...sole, faults: fault(wrong, 100_000) });
      network.runUntil(settledMs + 1000);
      network.assign(on('node-2'));
      network.runUntil(settledMs + 26_000);
      expect(network.holders(address)).toEqual(['node-1']);
      network.runUntil(settledMs + 40_000);
      expect(network.holders(address)).toEqual(['node-2']);
      expect(network.seen.get(address)?.shared).toBe(0);
    }
  });

  test('moves at once between nodes that live', () => {
    const network = networkOf(3, sole);
    network.runUntil(settledMs);
    for (const [index, node] of ['node-2', 'node-3', 'node-1'].entries()) {
      network.assign(on(node));
      network.runUntil(settledMs + 1000 * (index + 1));
      expect(network.holders(address)).toEqual([node]);
    }
    expect(network.seen.get(address)?.away).toBeLessThan(500);
  });

  test('goes at once with its agent where nothing is to outlive it', () => {
    const network = networkOf(3, { ...sole, restartGraceSeconds: 0, faults: fault('pause', 20_000) });
    network.runUntil(settledMs + 5000);
    expect(network.holders(address)).toEqual([]);
  });

  test('has no two owners, whatever goes wrong and wherever endpoints go', () => {
    const moves = fc.array(
      fc.record({
        toMs: fc.integer({ min: 0, max: 25_000 }),
        nodes: fc.uniqueArray(fc.constantFrom(...names), { minLength: 1, maxLength: 4 }),
      }),
      { maxLength: 6 },
    );
    fc.assert(
      fc.property(faults, moves, delaysMs, (wrong, moved, late) => {
        const network = networkOf(4, {
          ...{ faults: wrong, delaysMs: late, restartGraceSeconds: 120, addresses: on('node-1') },
          lease: { graceSeconds: 8 },
        });
        for (const { toMs, nodes } of moved.toSorted((a, b) => a.toMs - b.toMs)) {
          network.runUntil(toMs);
          network.assign(on(...nodes));
        }
        network.runUntil(30_000);
        expect(network.seen.get(address)?.shared).toBeLessThanOrEqual(
          leaseLastsMs + renewEveryMs + 4 * Math.max(...late),
        );
      }),
      { numRuns: 2 * numRuns },
    );
  });
});

describe('a longer Lease', () => {
  const lease = { leaseSeconds: 10, renewEveryMs: 2000 };
  const own = ['192.0.2.201', '192.0.2.202', '192.0.2.203', '192.0.2.204', '192.0.2.205'].map((address) =>
    assigned(address),
  );

  test.each<[Fault['of'], number, number]>([
    ['pause', 7000, 0],
    ['api', 7000, 0],
    ['dead', 60_000, 11_500],
  ])('loses nothing for longer, and takes over later: %s for %d ms', (of, lastsMs, longest) => {
    const fault: Fault = { node: 'node-1', of, fromMs: 20_000, lastsMs };
    const network = networkOf(3, { addresses: own, lease, faults: [fault] });
    network.runUntil(20_000);
    expect(own.map(({ address }) => owner(network, address))).toContain('node-1');
    network.runUntil(50_000);
    for (const [address, { away, shared }] of network.seen) {
      expect(away, address).toBeLessThanOrEqual(longest);
      expect(shared, address).toBeLessThan(500);
    }
  });

  test('has no address twice for longer than it may have it', () => {
    fc.assert(
      fc.property(faults, delaysMs, (wrong, late) => {
        const network = networkOf(4, { faults: wrong, delaysMs: late, lease });
        network.runUntil(60_000);
        for (const [address, { shared }] of network.seen)
          expect(shared, address).toBeLessThanOrEqual(8000 + leaseLastsMs + 2000 + 4 * Math.max(...late));
      }),
      { numRuns },
    );
  });
});

test('an egress address is at no two nodes, also while it moves', () => {
  const at = (egressNode: string): readonly ReturnType<typeof assigned>[] => [
    assigned('192.0.2.201', { egressNode }),
  ];
  const network = networkOf(3, { addresses: at('node-1') });
  for (const [index, node] of ['node-1', 'node-2', 'node-3', 'node-1'].entries()) {
    network.assign(at(node));
    network.runUntil(settledMs * (index + 1));
    expect(owner(network, '192.0.2.201')).toBe(node);
  }
  expect(network.seen.get('192.0.2.201')?.shared).toBe(0);
});
