import { describe, expect, it } from 'vitest';
import {
  cellsOf,
  endText,
  type Flow,
  type FlowFilter,
  matchesFlow,
  readFlowFilter,
  serviceText,
  workloadText,
} from '../../../../src/network/flows/flow.ts';
import { parsePlace } from '../../../../src/objects/flows/places.ts';

const flow: Flow = {
  ...{ id: 1, time: '2026-11-29T12:00:00.000Z', protocol: 'TCP', outcome: 'connected' },
  from: {
    ...{ kind: 'Pod', namespace: 'shop', name: 'cart-1', address: '10.0.0.1' },
    workload: { kind: 'Deployment', name: 'cart' },
  },
  service: { namespace: 'web', name: 'catalog', port: 80, address: '10.96.0.7' },
  to: { kind: 'Pod', namespace: 'web', name: 'catalog-1', address: 'fd00::2', port: 8080 },
};
const everything: FlowFilter = {
  ...{ namespace: undefined, from: undefined, to: undefined, outcomes: undefined, by: undefined, all: false },
};

describe('a flow', () => {
  it('has ends in the words of trace', () => {
    expect([endText(flow.from), workloadText(flow.from), serviceText(flow)]).toEqual([
      ...['pod/shop/cart-1', 'deploy/shop/cart', 'svc/web/catalog:80'],
    ]);
    expect(endText({ kind: 'Node', name: 'node-1', address: '10.0.0.9' })).toBe('node/node-1');
    expect(workloadText({ kind: 'outside', address: '192.0.2.1' })).toBe('outside');
    expect(serviceText({ ...flow, dns: { name: 'a.b' } })).toBe('dns/a.b');
  });

  it('is of the rows and columns of workloads and of namespaces', () => {
    const workload = { kind: 'Deployment', name: 'catalog' } as const;
    const to = { ...flow.to, kind: 'Pod', workload, address: 'fd00::2' } as const;
    expect(cellsOf({ ...flow, to })).toEqual({
      from: ['deployment/shop/cart', 'namespace/shop'],
      to: ['deployment/web/catalog:8080', 'namespace/web'],
    });
    const outside = { kind: 'outside', address: '192.0.2.1', port: 443 } as const;
    const node = { kind: 'Node', name: 'node-1', address: '10.0.0.9' } as const;
    expect(cellsOf({ ...flow, from: node, to: outside })).toEqual({ from: ['nodes'], to: ['outside:443'] });
    const { to: _, ...unknown } = flow;
    expect(cellsOf(unknown)).toBe(undefined);
    expect(cellsOf({ ...flow, from: { kind: 'control-plane', address: '10.0.0.1' } })).toBe(undefined);
  });

  it.each([
    ['cart-1', 'shop', 'from'],
    ['pod/shop/cart-1', 'default', 'from'],
    ['deploy/cart', 'shop', 'from'],
    ['deployment/shop/cart', 'default', 'from'],
    ['10.0.0.1', 'default', 'from'],
    ['svc/web/catalog', 'default', 'to'],
    ['svc/web/catalog:80', 'default', 'to'],
    ['10.96.0.7:80', 'default', 'to'],
    ['pod/web/catalog-1:8080', 'default', 'to'],
    ['[fd00:0::2]:8080', 'default', 'to'],
    ['fd00::2', 'default', 'to'],
  ] as const)('is found by %s in namespace %s as %s', (text, namespace, end) => {
    expect(matchesFlow(flow, { ...everything, [end]: parsePlace(text, namespace) })).toBe(true);
  });

  it.each([
    ['cart-1', 'default', 'from'],
    ['sts/shop/cart', 'default', 'from'],
    ['svc/shop/cart', 'default', 'from'],
    ['outside', 'default', 'from'],
    ['dns/catalog', 'default', 'from'],
    ['svc/web/catalog:81', 'default', 'to'],
    ['svc/web/catalogue', 'default', 'to'],
    ['pod/web/catalog-1:80', 'default', 'to'],
    ['node/catalog-1', 'default', 'to'],
    ['dns/catalog', 'default', 'to'],
    ['10.96.0.7:8080', 'default', 'to'],
  ] as const)('is not found by %s in namespace %s as %s', (text, namespace, end) => {
    const place = parsePlace(text, namespace);
    expect(place).toBeDefined();
    expect(matchesFlow(flow, { ...everything, [end]: place })).toBe(false);
  });

  it('is of the namespaces of its ends and its Service', () => {
    const matches = (namespace: string): boolean => matchesFlow(flow, { ...everything, namespace });
    expect([matches('shop'), matches('web'), matches('default')]).toEqual([true, true, false]);
  });

  it('is left out by its outcome, and where it is the own one of the cluster', () => {
    expect(matchesFlow(flow, { ...everything, outcomes: ['dropped', 'refused'] })).toBe(false);
    expect(matchesFlow(flow, { ...everything, outcomes: ['dropped', 'connected'] })).toBe(true);
    expect(matchesFlow({ ...flow, own: true }, everything)).toBe(false);
    expect(matchesFlow({ ...flow, own: true }, { ...everything, all: true })).toBe(true);
  });

  it('to a name of DNS is found by it, with or without a dot at its end', () => {
    const asked: Flow = { ...flow, outcome: 'NXDOMAIN', dns: { name: 'catalog.shopp' } };
    for (const text of ['dns/catalog.shopp', 'dns/Catalog.Shopp.']) {
      expect(matchesFlow(asked, { ...everything, to: parsePlace(text, 'default') })).toBe(true);
    }
  });

  it('is found by the object that decided, in the words of commands', () => {
    const decided: Flow = { ...flow, decidedBy: { object: 'NetworkPolicy web/deny-in', message: '' } };
    const by = (text: string) => readFlowFilter({ namespace: 'web', by: text });
    expect(matchesFlow(decided, by('netpol/deny-in'))).toBe(true);
    expect(matchesFlow(decided, by('netpol/deny'))).toBe(false);
    expect(matchesFlow(decided, by('netpol/shop/deny-in'))).toBe(false);
    expect(matchesFlow(decided, by('svc/deny-in'))).toBe(false);
    expect(matchesFlow(flow, by('netpol/deny-in'))).toBe(false);
    expect(() => by('pod/web/a')).toThrow('"pod/web/a" is no object that decides about flows: give');
  });
});
