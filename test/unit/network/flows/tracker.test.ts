import { beforeEach, describe, expect, it } from 'vitest';
import { readConntrackLine, type TrackedConnection } from '../../../../src/network/flows/conntrack.ts';
import { endText, type Flow, serviceText, workloadText } from '../../../../src/network/flows/flow.ts';
import { FlowNames } from '../../../../src/network/flows/names.ts';
import { type CountedDenial, FlowTracker } from '../../../../src/network/flows/tracker.ts';
import { ClusterView } from '../../../../src/network/path/cluster-view.ts';
import type { Node, Pod, Service } from '../../../../src/objects/types/core.generated.ts';
import type { EndpointSlice } from '../../../../src/objects/types/discovery.generated.ts';
import type { NetworkPolicy } from '../../../../src/objects/types/networking.generated.ts';
import { options } from '../forwarding/fixtures.ts';

const begunMs = Date.parse('2026-11-29T12:00:00.000Z');

function node(name: string, address: string): Node {
  return {
    metadata: { name },
    spec: {},
    status: { addresses: [{ type: 'InternalIP', address }] },
  };
}

function pod(name: string, nodeName: string, podIP: string): Pod {
  return {
    metadata: { namespace: 'shop', name, labels: { app: name } },
    spec: { nodeName, containers: [{ name: 'main' }] },
    status: { phase: 'Running', podIP, podIPs: [{ ip: podIP }] },
  };
}

function service(name: string, clusterIP: string, spec: object = {}, status: object = {}): Service {
  const ports = [{ name: '', port: 80, targetPort: 8080, protocol: 'TCP' as const }];
  return {
    metadata: { namespace: 'shop', name },
    spec: { type: 'ClusterIP', clusterIP, clusterIPs: [clusterIP], ports, ...spec },
    status,
  };
}

const slice: EndpointSlice = {
  metadata: { namespace: 'shop', name: 'web', labels: { 'kubernetes.io/service-name': 'web' } },
  addressType: 'IPv4',
  ports: [{ name: '', protocol: 'TCP', port: 8080 }],
  endpoints: [{ addresses: ['10.1.2.1'], conditions: { ready: true } }],
};
const isolated: NetworkPolicy = {
  metadata: { namespace: 'shop', name: 'deny-in' },
  spec: { podSelector: { matchLabels: { app: 'web' } }, policyTypes: ['Ingress'] },
};

/** A client on node-1, and `web` on node-2 behind a Service; `empty` has no endpoint. */
function namesWith(policies: readonly NetworkPolicy[]): FlowNames {
  const view = new ClusterView(
    {
      namespaces: [{ metadata: { name: 'shop' }, spec: {}, status: {} }],
      nodes: [node('node-1', '192.0.2.1'), node('node-2', '192.0.2.2')],
      pods: [pod('client', 'node-1', '10.1.1.1'), pod('web', 'node-2', '10.1.2.1')],
      services: [service('web', '10.96.0.7'), service('empty', '10.96.0.8')],
      slices: [slice],
      ...{ policies, firewalls: [] },
    },
    options(),
  );
  return new FlowNames(view, ['192.0.2.100']);
}

const reset = 'the destination has reset the connection: nothing listens at its port';

const events: ReadonlyMap<string, TrackedConnection['event']> = new Map([
  ['NEW', 'new'],
  ['UPDATE', 'update'],
  ['DESTROY', 'destroy'],
]);

describe('flows', () => {
  let told: Flow[] = [];
  let names = namesWith([]);
  let tracker: FlowTracker;
  beforeEach(() => {
    told = [];
    names = namesWith([]);
    tracker = new FlowTracker({ names: () => names, tell: (flow) => told.push(flow) });
  });

  const lineOf = (flow: Flow): string =>
    [
      ...[workloadText(flow.from), serviceText(flow) || '-', flow.to === undefined ? '-' : endText(flow.to)],
      ...[flow.outcome, flow.packets, flow.decidedBy?.object ?? flow.decidedBy?.message],
    ]
      .filter((each) => each !== undefined)
      .join(' ');
  const lines = (): readonly string[] => told.map(lineOf);

  /** @param text a line of `conntrack -L`, behind the word of an event. */
  function connection(text: string): TrackedConnection {
    const [, word = '', line = text] = /^\[(\w+)\] (.*)/.exec(text) ?? [];
    const found = readConntrackLine(line);
    if (found === undefined) throw new Error(text);
    return { ...found, event: events.get(word) ?? 'listed' };
  }
  /** From the client to the Service `web`, as node-1 sees it. */
  const toWeb = (event: string, port = 40_000, state = ''): TrackedConnection =>
    connection(
      `${event} tcp 6 src=10.1.1.1 dst=10.96.0.7 sport=${port} dport=80 ${state} src=10.1.2.1 dst=10.1.1.1 sport=8080 dport=${port}`,
    );
  const denial = (more: Partial<CountedDenial>): CountedDenial => ({
    ...{ node: 'node-2', by: 'policies', outcome: 'dropped', source: '10.1.1.1', destination: '10.1.2.1' },
    ...{ protocol: 'TCP', port: 8080, sentTo: '10.1.2.1', packets: 1, lastMs: begunMs },
    ...more,
  });
  const unreplied = '[UNREPLIED]';

  it('are told when the first answer comes, by the node of their source alone', () => {
    tracker.saw('node-1', toWeb('[NEW]', 40_000, unreplied), begunMs);
    const atWeb = connection(
      '[NEW] tcp 6 src=10.1.1.1 dst=10.1.2.1 sport=40000 dport=8080 [UNREPLIED] src=10.1.2.1 dst=10.1.1.1 sport=8080 dport=40000',
    );
    tracker.saw('node-2', atWeb, begunMs);
    expect(told).toEqual([]);
    tracker.saw('node-1', toWeb('[UPDATE]'), begunMs + 3);
    tracker.saw('node-1', toWeb('[UPDATE]'), begunMs + 4);
    tracker.saw('node-1', toWeb('[DESTROY]'), begunMs + 120_000);
    tracker.tick(begunMs + 120_000);
    expect(lines()).toEqual(['pod/shop/client svc/shop/web:80 pod/shop/web connected']);
    expect(told[0]).toMatchObject({ node: 'node-1', time: '2026-11-29T12:00:00.000Z' });
  });

  it('are others where a client uses its port again', () => {
    for (let i = 0; i < 2; i++) {
      tracker.saw('node-1', toWeb('[NEW]', 40_000, unreplied), begunMs);
      tracker.saw('node-1', toWeb('[UPDATE]'), begunMs);
    }
    expect(new Set(told.map(({ id }) => id)).size).toBe(2);
  });

  it('name the rule that lets them pass', () => {
    names = namesWith([{ ...isolated, spec: { ...isolated.spec, ingress: [{}] } }]);
    tracker.saw('node-1', toWeb('[NEW]', 40_000, unreplied), begunMs);
    tracker.saw('node-1', toWeb('[UPDATE]'), begunMs);
    expect(told[0]?.decidedBy).toEqual({
      object: 'NetworkPolicy shop/deny-in',
      field: 'spec.ingress[0]',
      message: 'a rule matches',
    });
  });

  it('are refused where they end at once without an answer, and opened where none comes', () => {
    tracker.saw('node-1', toWeb('[NEW]', 40_000, unreplied), begunMs);
    tracker.saw('node-1', toWeb('[DESTROY]', 40_000, unreplied), begunMs + 1);
    tracker.saw('node-1', toWeb('[NEW]', 40_001, unreplied), begunMs);
    tracker.tick(begunMs + 2999);
    expect(lines()).toEqual([`pod/shop/client svc/shop/web:80 pod/shop/web refused ${reset}`]);
    expect(tracker.known().map(({ outcome }) => outcome)).toEqual(['refused', 'opened']);
    tracker.tick(begunMs + 3000);
    tracker.tick(begunMs + 9000);
    expect(told.slice(1).map(({ outcome }) => outcome)).toEqual(['opened']);
    tracker.saw('node-1', toWeb('[UPDATE]', 40_001), begunMs + 10_000);
    expect(told.slice(2)).toMatchObject([{ id: told[1]?.id, outcome: 'connected' }]);
  });

  it('are no refusal where the kernel forgets them', () => {
    tracker.saw('node-1', toWeb('[NEW]', 40_000, unreplied), begunMs);
    tracker.tick(begunMs + 3000);
    tracker.saw('node-1', toWeb('[DESTROY]', 40_000, unreplied), begunMs + 120_000);
    expect(told.map(({ outcome }) => outcome)).toEqual(['opened']);
  });

  it('are known where they were there before, and nothing is said of them twice', () => {
    const listed = connection(
      'tcp 6 110 TIME_WAIT src=10.1.1.1 dst=10.96.0.7 sport=40000 dport=80 src=10.1.2.1 dst=10.1.1.1 sport=8080 dport=40000 [ASSURED] delta-time=10',
    );
    tracker.saw('node-1', listed, begunMs);
    tracker.saw('node-1', listed, begunMs);
    // One that began before, of which there was no beginning.
    tracker.saw('node-1', toWeb('[UPDATE]', 40_001), begunMs);
    expect(told).toMatchObject([{ outcome: 'connected', time: '2026-11-29T11:59:50.000Z' }]);
  });

  describe('whose packets were dropped', () => {
    beforeEach(() => {
      names = namesWith([isolated]);
    });
    const dropped = 'pod/shop/client svc/shop/web:80 pod/shop/web dropped';

    it('are one, with the Service that only their connections show', () => {
      for (const port of [40_000, 40_001]) {
        tracker.saw('node-1', toWeb('[NEW]', port, unreplied), begunMs);
      }
      tracker.denied(denial({ packets: 2 }));
      tracker.tick(begunMs + 9000);
      tracker.denied(denial({ packets: 5, lastMs: begunMs + 3000 }));
      tracker.denied(denial({ packets: 5, lastMs: begunMs + 3000 }));
      expect(lines()).toEqual([2, 5].map((count) => `${dropped} ${count} NetworkPolicy shop/deny-in`));
      expect(new Set(told.map(({ id }) => id)).size).toBe(1);
      expect(told[0]?.decidedBy?.field).toBe('spec.ingress');
    });

    it('are one, where their connection is seen later', () => {
      tracker.denied(denial({}));
      tracker.saw('node-1', toWeb('[NEW]', 40_000, unreplied), begunMs + 100);
      tracker.tick(begunMs + 9000);
      expect(lines()).toEqual([
        'pod/shop/client - pod/shop/web dropped 1 NetworkPolicy shop/deny-in',
        `${dropped} 1 NetworkPolicy shop/deny-in`,
      ]);
      expect(new Set(told.map(({ id }) => id)).size).toBe(1);
    });

    it('are added where the kernel counts anew', () => {
      tracker.denied(denial({ packets: 7 }));
      tracker.denied(denial({ packets: 2, lastMs: begunMs + 400_000 }));
      expect(told.map(({ packets }) => packets)).toEqual([7, 9]);
    });

    it('are not those that are opened later, to another port, or by another source', () => {
      tracker.denied(denial({}));
      tracker.saw('node-1', toWeb('[NEW]', 40_000, unreplied), begunMs + 60_000);
      tracker.tick(begunMs + 70_000);
      expect(told.map(({ outcome }) => outcome)).toEqual(['dropped', 'opened']);
    });

    it('are found behind the node that they came by', () => {
      const masqueraded = connection(
        '[NEW] tcp 6 src=203.0.113.9 dst=10.96.0.7 sport=5000 dport=80 [UNREPLIED] src=10.1.2.1 dst=192.0.2.1 sport=8080 dport=6000',
      );
      tracker.saw('node-1', masqueraded, begunMs);
      tracker.denied(denial({ source: '192.0.2.1' }));
      expect(lines()).toEqual(['outside svc/shop/web:80 pod/shop/web dropped 1 NetworkPolicy shop/deny-in']);
    });

    it('name nobody where nothing denies them any more', () => {
      names = namesWith([]);
      tracker.denied(denial({ node: 'node-1', sentTo: '10.96.0.7' }));
      expect(lines()).toEqual([`${dropped} 1 nothing denies it by now: the objects have changed since`]);
    });
  });

  it('to a Service without an endpoint are refused', () => {
    const atEmpty = { destination: '10.96.0.8', sentTo: '10.96.0.8', port: 80 };
    tracker.denied(denial({ ...atEmpty, node: 'node-1', by: 'services', outcome: 'refused' }));
    expect(lines()).toEqual(['pod/shop/client svc/shop/empty:80 - refused 1 Service shop/empty']);
  });

  it('of names and requests are told with their client', () => {
    tracker.missing('web.shopp', '10.1.1.1', begunMs);
    tracker.missing('wep', '10.1.1.1', begunMs);
    const request = {
      method: 'GET',
      host: 'a.test',
      path: '/x',
      status: 404,
      reason: 'NoHost',
      object: undefined,
    };
    tracker.refused({ ...request, client: '192.0.2.1', clientPort: 6000 }, begunMs);
    tracker.refused({ ...request, client: '10.1.1.1', clientPort: 7000 }, begunMs);
    tracker.saw(
      'node-1',
      connection(
        '[NEW] tcp 6 src=203.0.113.9 dst=10.96.0.7 sport=5000 dport=80 [UNREPLIED] src=192.0.2.100 dst=192.0.2.1 sport=10180 dport=6000',
      ),
      begunMs,
    );
    tracker.tick(begunMs + 999);
    tracker.tick(begunMs + 1000);
    expect(lines()).toEqual([
      'pod/shop/client dns/web.shopp - NXDOMAIN there is no namespace shopp, and the cluster has no other names',
      'pod/shop/client dns/wep - NXDOMAIN there is no Service shop/wep',
      'outside svc/shop/web:80 - refused NoHost: GET a.test/x 404',
      'pod/shop/client - - refused NoHost: GET a.test/x 404',
    ]);
  });

  it.each([
    [
      'node-2',
      'src=192.0.2.2 dst=10.1.2.1 sport=1 dport=8080',
      'src=10.1.2.1 dst=192.0.2.2 sport=8080 dport=1',
      true,
    ],
    [
      'node-1',
      'src=192.0.2.1 dst=192.0.2.2 sport=1 dport=10262',
      'src=192.0.2.2 dst=192.0.2.1 sport=10262 dport=1',
      true,
    ],
    [
      'node-2',
      'src=192.0.2.100 dst=10.1.2.1 sport=1 dport=8080',
      'src=10.1.2.1 dst=192.0.2.100 sport=8080 dport=1',
      true,
    ],
    [
      'node-1',
      'src=192.0.2.1 dst=10.96.0.7 sport=1 dport=80',
      'src=10.1.2.1 dst=192.0.2.1 sport=8080 dport=1',
      undefined,
    ],
    [
      'node-1',
      'src=192.0.2.1 dst=10.1.2.1 sport=1 dport=8080',
      'src=10.1.2.1 dst=192.0.2.1 sport=8080 dport=1',
      undefined,
    ],
  ])("on %s, %s, is the cluster's own or not", (on, original, reply, own) => {
    tracker.saw(on, connection(`[NEW] tcp 6 ${original} [UNREPLIED] ${reply}`), begunMs);
    tracker.saw(on, connection(`[UPDATE] tcp 6 ${original} ${reply}`), begunMs);
    expect(told.map((flow) => flow.own)).toEqual([own]);
  });

  it('are the last 10,000, and what is forgotten before it is told is counted', () => {
    for (let i = 0; i < 11_001; i++) tracker.saw('node-1', toWeb('[NEW]', 20_000 + i, unreplied), begunMs);
    expect(tracker.forgotten).toBe(1001);
    tracker.tick(begunMs + 3000);
    expect(told).toHaveLength(10_000);
    expect(tracker.known()).toHaveLength(10_000);
  });
});
