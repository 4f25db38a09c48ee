import { describe, expect, test } from 'vitest';
import { importCilium } from '../../../../src/pools/import/cilium.ts';
import { keepingAssigned } from '../../../../src/pools/import/imported.ts';
import { importKubeVip } from '../../../../src/pools/import/kube-vip.ts';
import { importMetalLB, importMetalLBConfig } from '../../../../src/pools/import/metallb.ts';
import type { KubeObject } from '../../../../src/objects/meta.ts';

const object = (name: string, rest: Record<string, unknown>): KubeObject => ({ metadata: { name }, ...rest });
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
      { addresses: [] },
    ]);
    expect(notes).toHaveLength(3);
  });

  test('of MetalLB before 0.13, whose ConfigMap has YAML in it', () => {
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

  test('names the fields that mean nothing here', () => {
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

  test('keeps every address that is in use', () => {
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
