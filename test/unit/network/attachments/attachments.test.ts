import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type AttachmentRules,
  attachedInterfaces,
  gatewaysOf,
  resolveAttachments,
  staticAddresses,
} from '../../../../src/network/attachments/attachments.ts';
import { macOf, parseMac } from '../../../../src/network/attachments/ipam.ts';
import {
  formatNetworkStatus,
  networkStatusAnnotation,
  parseNetworkStatus,
} from '../../../../src/network/attachments/network-status.ts';
import { networksAnnotation } from '../../../../src/network/attachments/attachments.ts';
import type { NetworkAttachmentDefinition } from '../../../../src/objects/types/openshift.ts';
import type { Pod } from '../../../../src/objects/types/core.generated.ts';
import '../../../support/fast-check.ts';

const whereabouts = { type: 'whereabouts', range: '10.5.0.0/24' };
const definitions: Record<string, object> = {
  'shop/a': { type: 'macvlan', ipam: whereabouts },
  'shop/b': {
    type: 'bridge',
    bridge: 'br1',
    ipam: { type: 'static', addresses: [{ address: '10.6.0.3/24' }] },
  },
  'default/c': { type: 'macvlan', ipam: { type: 'host-local', subnet: 'fd00::/64' } },
};

function find(namespace: string, name: string): NetworkAttachmentDefinition | undefined {
  const config = definitions[`${namespace}/${name}`];
  if (config === undefined) return undefined;
  return { metadata: { namespace, name }, spec: { config: JSON.stringify(config) } };
}

function pod(networks: string, more: Record<string, string> = {}, spec: object = {}): Pod {
  const annotations = { [networksAnnotation]: networks, ...more };
  return {
    metadata: { namespace: 'shop', name: 'web', uid: 'u-1', annotations },
    spec: { ...spec },
    status: {},
  };
}

function names(networks: string, rules?: AttachmentRules): readonly string[] {
  return resolveAttachments(pod(networks), find, rules).map((each) => `${each.interface}=${each.network}`);
}

describe('the attachments of a Pod', () => {
  it('are numbered by their places from net1, whatever the others are called', () => {
    expect(names('a,b')).toEqual(['net1=shop/a', 'net2=shop/b']);
    expect(names('a@lan,b,a')).toEqual(['lan=shop/a', 'net2=shop/b', 'net3=shop/a']);
    expect(names('default/c')).toEqual(['net1=default/c']);
    expect(names('')).toEqual([]);
    expect(resolveAttachments(pod('a', {}, { hostNetwork: true }), find)).toEqual([]);
  });

  it('have one name each', () => {
    for (const networks of ['a@x,b@x', 'a@net2,b', 'a@eth0'])
      expect(() => names(networks)).toThrow('file exists');
  });

  it('name what is missing', () => {
    expect(() => names('a,gone')).toThrow(
      'cannot find a network-attachment-definition (gone) in namespace (shop)',
    );
    expect(() => names('gone')).toThrow(expect.objectContaining({ reason: 'NoNetworkFound' }));
  });

  it('are of the own namespace alone where namespaces are isolated, but for those that are for all', () => {
    const isolated = { namespaceIsolation: true };
    expect(names('a,default/c', isolated)).toHaveLength(2);
    const none = { ...isolated, nonIsolatedNamespaces: ['lan'] };
    expect(() => names('default/c', none)).toThrow('namespace isolation enabled');
    expect(names('a', none)).toHaveLength(1);
  });
});

describe('the interfaces of a Pod', () => {
  it('have the addresses of the annotation, with the prefix lengths of their networks', () => {
    const networks = JSON.stringify([
      { name: 'a', 'default-route': ['10.5.0.1'] },
      { name: 'b', ips: ['10.6.0.9/16'] },
      { name: 'c', namespace: 'default' },
    ]);
    const status = formatNetworkStatus([
      { name: 'servicenet', interface: 'eth0', ips: ['10.244.0.5'], default: true, dns: {} },
      { name: 'shop/a', interface: 'net1', ips: ['10.5.0.7'], mac: '02:00:00:00:00:01', dns: {} },
      { name: 'shop/b', interface: 'net2', ips: ['10.6.0.9'], dns: {} },
      { name: 'default/c', interface: 'net3', ips: ['fd00::5'], dns: {} },
    ]);
    const found = attachedInterfaces(pod(networks, { [networkStatusAnnotation]: status }), find);
    const texts = found?.map(({ attachment, addresses }) => {
      const addressTexts = addresses.map(({ address, prefixLength }) => `${address}/${prefixLength}`);
      return [attachment.interface, ...addressTexts].join(' ');
    });
    expect(texts).toEqual(['net1 10.5.0.7/24', 'net2 10.6.0.9/16', 'net3 fd00::5/64']);
    expect(found?.[0]?.attachment.mac).toBe('02:00:00:00:00:01');
    expect(attachedInterfaces(pod('a'), find)).toBeUndefined();
  });

  it('show gateways of default routes alone', () => {
    const [first] = resolveAttachments(pod('[{"name":"a","default-route":["10.5.0.1","fd00::1"]}]'), find);
    expect(first && gatewaysOf(first)).toEqual(['10.5.0.1', 'fd00::1']);
    const [plain] = resolveAttachments(pod('a'), find);
    expect(plain && gatewaysOf(plain)).toEqual([]);
  });

  it('ask static for addresses with a prefix length', () => {
    const [own] = resolveAttachments(pod('b'), find);
    expect(own && staticAddresses(own)).toMatchObject([{ address: '10.6.0.3', prefixLength: 24 }]);
    const [asked] = resolveAttachments(pod('[{"name":"b","ips":["10.6.0.9"]}]'), find);
    expect(() => asked && staticAddresses(asked)).toThrow('does not have a prefix length');
  });
});

describe('hardware addresses', () => {
  it('are read in the forms of Go', () => {
    for (const text of ['C2:11:22:33:44:66', 'c2-11-22-33-44-66', 'c211.2233.4466']) {
      expect(parseMac(text)).toBe('c2:11:22:33:44:66');
    }
    for (const text of [
      '',
      'c2:11:22:33:44',
      'c2:11:22:33:44:66:77',
      'c2:11-22:33:44:66',
      'x2:11:22:33:44:66',
    ]) {
      expect(parseMac(text)).toBeUndefined();
    }
  });

  it('are local, of one station, the same each time and others for others', () => {
    const seen = new Map<string, string>();
    const property = fc.property(fc.uuid(), fc.integer({ min: 1, max: 9 }), (uid, number) => {
      const mac = macOf(uid, `net${number}`);
      expect(mac).toMatch(/^.[26ae](:[0-9a-f]{2}){5}$/);
      expect(macOf(uid, `net${number}`)).toBe(mac);
      expect(seen.get(mac) ?? `${uid}${number}`).toBe(`${uid}${number}`);
      seen.set(mac, `${uid}${number}`);
    });
    fc.assert(property);
    const interfaces = Array.from({ length: 200 }, (_, index) => macOf('u', `net${index}`));
    expect(new Set(interfaces).size).toBe(200);
  });
});

describe('network-status', () => {
  it('is written as multus writes it, and read again', () => {
    const statuses = [
      { name: 'servicenet', interface: 'eth0', ips: ['10.244.0.5'], default: true, dns: {} },
      {
        name: 'shop/a',
        interface: 'net1',
        mac: '02:00:00:00:00:01',
        mtu: 1400,
        dns: {},
        gateway: ['10.5.0.1'],
      },
    ];
    const text = formatNetworkStatus(statuses);
    expect(text).toBe(`[{
    "name": "servicenet",
    "interface": "eth0",
    "ips": [
        "10.244.0.5"
    ],
    "default": true,
    "dns": {}
},{
    "name": "shop/a",
    "interface": "net1",
    "mac": "02:00:00:00:00:01",
    "mtu": 1400,
    "dns": {},
    "gateway": [
        "10.5.0.1"
    ]
}]`);
    expect(parseNetworkStatus(text)).toEqual(statuses);
    expect(formatNetworkStatus([])).toBe('[]');
  });

  it('counts as absent where it cannot be read', () => {
    for (const text of ['', '{}', '[7]', '[{}]', '[{"name":1}]', 'x'])
      expect(parseNetworkStatus(text)).toBeUndefined();
    expect(parseNetworkStatus('[{"name":"a","ips":"x","dns":null}]')).toEqual([{ name: 'a', dns: {} }]);
  });
});
