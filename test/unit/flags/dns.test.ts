import { expect, test } from 'vitest';
import { dnsConfig } from '../../../src/flags/dns.ts';
import { givenFlags } from '../../support/command-line.ts';

/** What the flags of a command line mean. */
const read = (...args: string[]) => dnsConfig(givenFlags('dns', args));

test('the defaults need no root and reach nothing but this machine', () => {
  expect(read()).toMatchObject({
    clusterDomain: 'cluster.local',
    addresses: ['127.0.0.1'],
    port: 1053,
    ttlSeconds: 5,
    pods: 'disabled',
    upstreams: [{ file: '/etc/resolv.conf' }],
    lameduckMs: 0,
    metrics: { host: '127.0.0.1', port: 9153 },
  });
});

test.each([
  ['192.0.2.1', [{ address: '192.0.2.1', port: 53 }]],
  ['192.0.2.1:5353', [{ address: '192.0.2.1', port: 5353 }]],
  ['2001:db8::1', [{ address: '2001:db8::1', port: 53 }]],
  ['[2001:db8::1]:5353', [{ address: '2001:db8::1', port: 5353 }]],
  ['192.0.2.1, /etc/resolv.conf', [{ address: '192.0.2.1', port: 53 }, { file: '/etc/resolv.conf' }]],
  ['', []],
])('--upstream %s', (given, expected) => {
  expect(read('--upstream', given).upstreams).toEqual(expected);
});

test('the addresses of a Pod, as the downward API gives them', () => {
  expect(read('--bind-address', '10.244.0.2,fd00:244::2').addresses).toEqual(['10.244.0.2', 'fd00:244::2']);
});

test('a domain may end in a dot, and be in upper case', () => {
  expect(read('--cluster-domain', 'K8s.Example.com.').clusterDomain).toBe('k8s.example.com');
});

test.each([
  ['an upstream by name', ['--upstream', 'dns.example.com'], '--upstream: "dns.example.com"'],
  ['an upstream port of 0', ['--upstream', '192.0.2.1:0'], '--upstream'],
  ['an upstream port that is too large', ['--upstream', '192.0.2.1:65536'], '--upstream'],
  ['a TTL of more than an hour', ['--ttl', '3601'], '--ttl'],
  ['an address that is none', ['--bind-address', 'localhost'], '--bind-address'],
  ['no address', ['--bind-address', ''], '--bind-address'],
  ['the port 0', ['--port', '0'], '--port'],
  ['a domain that is none', ['--cluster-domain', 'a_b'], '--cluster-domain'],
  [
    'a domain that leaves no room for names',
    ['--cluster-domain', `${'a'.repeat(50)}.example`],
    '--cluster-domain',
  ],
  ['an unknown mode of Pods', ['--pods', 'all'], ''],
])('refuses %s', (_name, args, message) => {
  expect(() => read(...args)).toThrow(message);
});

test('one process by default, and 64 at most', () => {
  expect(read().workers).toBe(1);
  expect(read('--workers', '2').workers).toBe(2);
});

test.each(['0', '65', '-1', '1.5', 'auto'])('refuses --workers %s', (given) => {
  expect(() => read('--workers', given)).toThrow('--workers: must be a whole number from 1 to 64');
});
