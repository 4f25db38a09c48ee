import { describe, expect, test } from 'vitest';
import { importCilium } from '../../../src/pools/import/cilium.ts';
import { keepingAssigned } from '../../../src/pools/import/imported.ts';
import { importKubeVip } from '../../../src/pools/import/kube-vip.ts';
import { importMetalLB, importMetalLBConfig } from '../../../src/pools/import/metallb.ts';
import type { KubeObject } from '../../../src/objects/meta.ts';

const object = (name: string, rest: Record<string, unknown>): KubeObject => ({
  metadata: { name },
  ...rest,
});
const inNamespaces = (...values: string[]): unknown => ({
  matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values }],
});

describe('import', () => {
  test('of MetalLB', () => {
    const { pools, notes } = importMetalLB([
      object('a', { spec: { addresses: ['192.0.2.0/24', '198.51.100.1-198.51.100.9'], autoAssign: false } }),
      object('b', {
        spec: {
          addresses: ['203.0.113.0/24'],
          avoidBuggyIPs: true,
          serviceAllocation: {
            priority: 10,
            namespaces: ['x', 'y'],
            serviceSelectors: [{ matchLabels: { app: 'w' } }, {}],
          },
        },
      }),
      object('broken', { spec: 'x' }),
    ]);
    expect(pools.map(({ spec }) => spec)).toEqual([
      { addresses: ['192.0.2.0/24', '198.51.100.1-198.51.100.9'], autoAssign: false },
      {
        addresses: ['203.0.113.0/24'],
        avoidFirstLast: true,
        priority: 999_990,
        namespaceSelector: inNamespaces('x', 'y'),
        serviceSelector: { matchLabels: { app: 'w' } },
      },
    ]);
    expect(notes).toEqual([
      'b: avoidBuggyIPs became avoidFirstLast; list further .0 and .255 addresses in spec.exclude',
      'b: selects Services by any of 2 selectors; an AddressPool has one, so only the first was taken',
      'broken: not imported: it has no addresses that a pool can have',
    ]);
  });

  test('clears the host bits of CIDRs, and leaves out entries that no pool can have', () => {
    const addresses = [
      '192.168.1.5/28',
      ' 192.168.0.220/29',
      '2001:db8:0:aa00::5/120',
      '2001:db8:0:aa00::/56',
      '192.0.2.9 - 192.0.2.20',
      '192.0.2.9-192.0.2.2',
      '192.0.2.1-2001:db8::1',
      '192.0.2.077',
      '192.0.2.78',
      'lan',
    ];
    const { pools, notes } = importMetalLB([object('a', { spec: { addresses } })]);
    expect(pools[0]?.spec.addresses).toEqual([
      '192.168.1.0/28',
      '192.168.0.216/29',
      '2001:db8:0:aa00::/120',
      '192.0.2.9-192.0.2.20',
      '192.0.2.78-192.0.2.78',
    ]);
    expect(notes.map((note) => note.split(' not imported: ')[0])).toEqual(
      ['2001:db8:0:aa00::/56', '192.0.2.9-192.0.2.2', '192.0.2.1-2001:db8::1', '192.0.2.077', 'lan'].map(
        (text) => `a: "${text}"`,
      ),
    );
  });

  test('makes no pool of addresses from DHCP', () => {
    const data = { 'cidr-global': '0.0.0.0/32', 'range-x': '0.0.0.0-0.0.0.0, 192.0.2.1-192.0.2.2' };
    const { pools, notes } = importKubeVip(object('kubevip', { data }));
    expect(pools.map(({ metadata, spec }) => [metadata.name, spec.addresses])).toEqual([
      ['kube-vip-x', ['192.0.2.1-192.0.2.2']],
    ]);
    expect(notes).toHaveLength(3);
    expect(notes[0]).toBe(
      'kube-vip-global: "0.0.0.0/32" not imported: it asks DHCP for addresses, which has no counterpart',
    );
  });

  test('does not import a pool with an invalid selector', () => {
    const addresses = ['192.0.2.0/24'];
    const selectors = [{ matchLabels: { 'no label': 'x' } }, { matchExpressions: 7 }, 'x'];
    for (const selector of selectors) {
      const metalLB = object('a', {
        spec: { addresses, serviceAllocation: { serviceSelectors: [selector] } },
      });
      expect(importMetalLB([metalLB]).pools).toEqual([]);
      const cilium = object('a', { spec: { blocks: [{ cidr: '192.0.2.0/24' }], serviceSelector: selector } });
      expect(importCilium([cilium]).pools).toEqual([]);
    }
  });

  test('gives every pool a unique, valid name', () => {
    const pool = (name: string): string => `- { name: ${JSON.stringify(name)}, addresses: [192.0.2.0/24] }\n`;
    const config = `address-pools:\n${['lan', 'LAN', 'My_Pool', '..', '', 'x'.repeat(300)].map(pool).join('')}`;
    const { pools, notes } = importMetalLBConfig(object('config', { data: { config } }));
    expect(pools.map(({ metadata }) => metadata.name)).toEqual([
      'lan',
      'lan-2',
      'my-pool',
      'pool',
      'pool-2',
      'x'.repeat(245),
    ]);
    expect(notes[0]).toBe('"LAN" was renamed to lan-2');
  });

  test('serves the namespaces that all selectors of a Cilium pool name', () => {
    const key = 'io.kubernetes.service.namespace';
    const of = (...values: string[][]): unknown => {
      const matchExpressions = values.map((list) => ({ key, operator: 'In', values: list }));
      const spec = { blocks: [{ cidr: '192.0.2.0/24' }], serviceSelector: { matchExpressions } };
      return importCilium([object('a', { spec })]).pools[0]?.spec.namespaceSelector;
    };
    expect(of(['x', 'y'], ['y', 'z'])).toEqual(inNamespaces('y'));
    expect(of(['x'], ['y'])).toBeUndefined();
  });

  test('of the YAML in the ConfigMap of MetalLB before 0.13', () => {
    const config = `
      peers: [{ peer-address: 10.0.0.1 }]
      address-pools:
      - name: default
        protocol: layer2
        addresses: [192.0.2.0/24]
        avoid-buggy-ips: true
      - { name: bgp, protocol: bgp, addresses: [198.51.100.0/24], auto-assign: false, bgp-advertisements: [{}] }`;
    const { pools, notes } = importMetalLBConfig(object('config', { data: { config } }));
    expect(pools.map(({ metadata, spec }) => [metadata.name, spec])).toEqual([
      ['default', { addresses: ['192.0.2.0/24'], avoidFirstLast: true }],
      ['bgp', { addresses: ['198.51.100.0/24'], autoAssign: false }],
    ]);
    expect(notes).toContain('config: peers not imported');
    expect(notes).toContain('bgp: bgp-advertisements not imported');
    expect(importMetalLBConfig(object('config', {})).notes).toEqual(['config: has no address-pools']);
  });

  test('names the fields that are not imported', () => {
    const spec = { addresses: ['192.0.2.0/24'], colour: 'blue', serviceAllocation: { weight: 1 } };
    expect(importMetalLB([object('a', { spec })]).notes).toEqual([
      'a: colour not imported',
      'a: weight not imported',
    ]);
    const blocks = [{ cidr: '192.0.2.0/24' }];
    expect(importCilium([object('a', { spec: { blocks, colour: 'blue' } })]).notes).toEqual([
      'a: colour not imported',
    ]);
  });

  test('of Cilium', () => {
    const { pools, notes } = importCilium([
      object('a', {
        spec: {
          blocks: [
            { cidr: '192.0.2.0/28' },
            { start: '198.51.100.1', stop: '198.51.100.9' },
            { start: '2001:db8::1' },
          ],
          allowFirstLastIPs: 'No',
          serviceSelector: { matchLabels: { 'io.kubernetes.service.namespace': 'x', app: 'w' } },
        },
      }),
      object('off', { spec: { cidrs: [{ cidr: '203.0.113.0/24' }], disabled: true } }),
    ]);
    expect(pools.map(({ spec }) => spec)).toEqual([
      {
        addresses: ['192.0.2.0/28', '198.51.100.1-198.51.100.9', '2001:db8::1-2001:db8::1'],
        avoidFirstLast: true,
        namespaceSelector: inNamespaces('x'),
        serviceSelector: { matchLabels: { app: 'w' } },
      },
      { addresses: ['203.0.113.0/24'], autoAssign: false },
    ]);
    expect(notes).toHaveLength(1);
  });

  test('of kube-vip', () => {
    const data = {
      'cidr-global': '192.0.2.0/28',
      'range-x': '198.51.100.1-198.51.100.9, 198.51.100.20-198.51.100.21',
      'allow-share-x': 'true',
    };
    expect(
      importKubeVip(object('kubevip', { data })).pools.map(({ metadata, spec }) => ({
        [metadata.name ?? '']: spec,
      })),
    ).toEqual([
      { 'kube-vip-global': { addresses: ['192.0.2.0/28'] } },
      {
        'kube-vip-x': {
          addresses: ['198.51.100.1-198.51.100.9', '198.51.100.20-198.51.100.21'],
          namespaceSelector: inNamespaces('x'),
          sharing: 'by-ports',
        },
      },
    ]);
  });

  test('adds pools for the addresses in use', () => {
    const imported = importMetalLB([object('a', { spec: { addresses: ['192.0.2.0/24'] } })]);
    const service = (type: string, ...ips: string[]) => ({
      metadata: {},
      spec: { type },
      status: { loadBalancer: { ingress: ips.map((ip) => ({ ip })) } },
    });
    const { pools } = keepingAssigned(
      imported,
      [
        service('LoadBalancer', '192.0.2.1', '198.51.100.7', '2001:db8::7', '203.0.113.9'),
        service('ClusterIP', '203.0.113.1'),
      ],
      [{ metadata: { name: 'ours' }, spec: { addresses: ['203.0.113.9/32'] } }],
    );
    expect(pools.at(-1)?.spec).toEqual({
      addresses: ['198.51.100.7/32', '2001:db8::7/128'],
      autoAssign: false,
    });
  });
});
