import { describe, expect, it } from 'vitest';
import { seenBeside } from '../../../../src/network/path/packet.ts';
import type { Hop, SeenConnection } from '../../../../src/network/path/way.ts';

const allow = { stage: 'service', verdict: 'allow', message: '' } as const;
const deny = { stage: 'ingress NetworkPolicy', verdict: 'deny', message: '' } as const;

/** From a Pod on node-1 by a Service to an endpoint on another node. */
function wayTo(endpoint: string, node: string, isDenied = false): readonly Hop[] {
  const way: readonly Hop[] = [
    {
      ...{ at: 'Pod shop/cart-1', stages: [] },
      sends: { source: '10.244.0.39', destination: '10.96.8.20:80', changed: [] },
    },
    {
      ...{ at: 'node node-1', stages: [allow] },
      sends: { source: '10.244.0.39', destination: endpoint, changed: ['destination'] },
    },
  ];
  if (isDenied) return [...way, { at: `node ${node}`, stages: [deny] }];
  const sends = { source: '10.244.0.39', destination: endpoint, changed: [] } as const;
  return [...way, { at: `node ${node}`, stages: [], sends }, { at: 'Pod shop/catalog-1', stages: [] }];
}

function seenOn(node: string, to: string, from = '10.244.0.39:59434'): SeenConnection {
  const received = { source: '10.244.0.39:59434', destination: '10.96.8.20:80' };
  return { node, received, sent: { source: from, destination: to } };
}

/** Of each way, what its hops have seen. */
function words(
  ways: readonly (readonly Hop[])[],
  endpoints: readonly string[],
  seen: readonly SeenConnection[],
) {
  return seenBeside(ways, endpoints, seen).map((way) =>
    way.flatMap(({ seen: of }) => (of === undefined ? [] : [`${of.agrees ? '' : '!'}${of.message}`])),
  );
}

describe('what was seen stands', () => {
  const endpoints = ['10.244.2.77:8080', '10.244.1.9:8080'];
  const ways = [wayTo('10.244.2.77:8080', 'node-3'), wayTo('10.244.1.9:8080', 'node-2')];

  it('beside the way to the endpoint that was chosen', () => {
    const seen = [seenOn('node-1', '10.244.1.9:8080'), seenOn('node-2', '10.244.1.9:8080')];
    expect(words(ways, endpoints, seen)).toEqual([[], ['seen on node-1', 'seen on node-2']]);
  });

  it('beside a policy that has ended it, or has not', () => {
    const denied = [wayTo('10.244.2.77:8080', 'node-3', true)];
    const [endpoint = ''] = endpoints;
    expect(words(denied, [endpoint], [seenOn('node-1', endpoint)])).toEqual([
      ['seen on node-1', 'not seen to pass, as planned'],
    ]);
    expect(words(denied, [endpoint], [seenOn('node-1', endpoint), seenOn('node-3', endpoint)])).toEqual([
      ['seen on node-1', '!seen on node-3 to pass, against the plan'],
    ]);
  });

  it('beside the way that the node of the source ends, whose own Pod it is', () => {
    const [source, first] = wayTo('10.244.0.8:8080', 'node-1');
    if (source === undefined || first === undefined) throw new Error('a way has two hops');
    const own: readonly Hop[] = [source, first, { at: 'Pod shop/catalog-2', stages: [deny] }];
    const denied = [wayTo('10.244.2.77:8080', 'node-3', true), own];
    expect(words(denied, ['10.244.2.77:8080', '10.244.0.8:8080'], [])).toEqual([
      [],
      ['not seen to pass, as planned'],
    ]);
  });

  it('beside all ways where it went none of them', () => {
    const elsewhere = [seenOn('node-1', '10.244.9.9:8080', '172.18.0.2:51111')];
    const against = '!seen on node-1 to be sent to 10.244.9.9:8080 from 172.18.0.2:51111, against the plan';
    expect(words(ways, endpoints, elsewhere)).toEqual([
      [against, '!not seen here'],
      [against, '!not seen here'],
    ]);
    expect(words(ways, endpoints, [])).toEqual([
      ['!not seen here', '!not seen here'],
      ['!not seen here', '!not seen here'],
    ]);
  });

  it('at any node, whichever it was', () => {
    const way: readonly Hop[] = [
      {
        ...{ at: 'outside', stages: [] },
        sends: { source: '2001:db8::1', destination: '[2001:db8::9]:80', changed: [] },
      },
      {
        ...{ at: 'any node', stages: [allow] },
        sends: { source: '2001:db8::1', destination: '[fd00::7]:8080', changed: ['destination'] },
      },
      {
        at: 'node node-3',
        stages: [],
        sends: { source: '2001:db8::1', destination: '[fd00::7]:8080', changed: [] },
      },
      { at: 'Pod shop/catalog-1', stages: [] },
    ];
    const received = { source: '[2001:db8::5]:40000', destination: '[2001:db8::9]:80' };
    const seen = ['node-2', 'node-3'].map((node) => ({
      ...{ node, received, sent: { ...received, destination: '[fd00::7]:8080' } },
    }));
    expect(words([way], ['[fd00::7]:8080'], seen)).toEqual([['seen on node-2', 'seen on node-3']]);
  });
});
