import { expect, test } from 'vitest';
import { dnsAddress, dnsServiceKey, dnsServiceObjects } from '../../../../src/network/dns/dns-service.ts';
import { keyOf } from '../../../../src/objects/meta.ts';
import { cidr } from '../forwarding/fixtures.ts';
import { ask, zoneOf } from './fixtures.ts';

const { service, slices } = dnsServiceObjects(
  [cidr('10.96.0.0/16'), cidr('fd00:96::/112')],
  ['10.244.0.2', 'fd00:244::2'],
  1053,
);

test('the Service has the tenth address of each range, on port 53', () => {
  expect(dnsAddress(cidr('10.96.0.0/16'))).toBe('10.96.0.10');
  expect(keyOf(service)).toBe(dnsServiceKey);
  expect(service.spec).toMatchObject({
    clusterIP: '10.96.0.10',
    clusterIPs: ['10.96.0.10', 'fd00:96::a'],
    ports: [
      { name: 'dns', protocol: 'UDP', port: 53, targetPort: 1053 },
      { name: 'dns-tcp', protocol: 'TCP', port: 53, targetPort: 1053 },
    ],
  });
});

test('each family has a slice of its own addresses', () => {
  expect(slices).toMatchObject([
    {
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.244.0.2'] }],
      ports: [{ port: 1053 }, { port: 1053 }],
    },
    { addressType: 'IPv6', endpoints: [{ addresses: ['fd00:244::2'] }] },
  ]);
});

test('by these objects, the DNS finds itself', () => {
  const zone = zoneOf({ namespaces: ['kube-system'], services: [service], slices });
  expect(ask(zone, '_dns._udp.kube-dns.kube-system.svc.cluster.local', 'SRV')).toEqual([
    '0 50 53 kube-dns.kube-system.svc.cluster.local',
  ]);
  expect(ask(zone, '10.0.96.10.in-addr.arpa', 'PTR')).toEqual(['kube-dns.kube-system.svc.cluster.local']);
  expect(ask(zone, 'ns.dns.cluster.local', 'AAAA')).toEqual(['fd00:96::a']);
});
