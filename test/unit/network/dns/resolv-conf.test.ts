import { describe, expect, test } from 'vitest';
import { parseResolvConf, resolvConf } from '../../../../src/network/dns/resolv-conf.ts';
import type { PodSpec } from '../../../../src/objects/types/core.generated.ts';

const cluster = {
  servers: ['10.96.0.10'],
  domain: 'cluster.local',
  node: { nameservers: ['192.0.2.53'], searches: ['example.com'], options: ['edns0'] },
};
const conf = (spec: PodSpec, change: Partial<typeof cluster> = {}) =>
  resolvConf({ metadata: { namespace: 'shop', name: 'p' }, spec }, { ...cluster, ...change });

const ofCluster = `search shop.svc.cluster.local svc.cluster.local cluster.local example.com
nameserver 10.96.0.10
options ndots:5
`;
const ofNode = `search example.com
nameserver 192.0.2.53
options edns0
`;

/** pkg/kubelet/network/dns/dns_test.go, TestGetPodDNS and TestGetPodDNSCustom. */
describe('the policies', () => {
  test.each([
    ['ClusterFirst', {}, ofCluster],
    ['ClusterFirst on the network of the node', { hostNetwork: true }, ofNode],
    ['ClusterFirstWithHostNet', { dnsPolicy: 'ClusterFirstWithHostNet', hostNetwork: true }, ofCluster],
    ['Default', { dnsPolicy: 'Default' }, ofNode],
    ['None', { dnsPolicy: 'None', dnsConfig: { nameservers: ['203.0.113.1'] } }, 'nameserver 203.0.113.1\n'],
    [
      'ClusterFirst with a config: its servers and searches come last, its options win',
      {
        dnsConfig: {
          nameservers: ['203.0.113.1', '10.96.0.10'],
          searches: ['my.example', 'cluster.local'],
          options: [{ name: 'ndots', value: '2' }, { name: 'single-request' }],
        },
      },
      `search shop.svc.cluster.local svc.cluster.local cluster.local example.com my.example
nameserver 10.96.0.10
nameserver 203.0.113.1
options ndots:2 single-request
`,
    ],
  ] as [string, PodSpec, string][])('%s', (_name, spec, expected) => {
    expect(conf(spec)).toEqual({ text: expected, warnings: [] });
  });

  test('without a DNS of the cluster, ClusterFirst is Default, with a warning', () => {
    expect(conf({}, { servers: [] })).toMatchObject({
      text: ofNode,
      warnings: [{ reason: 'MissingClusterDNS' }],
    });
  });

  test('without a domain, the search list is that of the node', () => {
    expect(conf({}, { domain: '' }).text).toContain('search example.com\n');
  });
});

/** TestFormDNSSearchFitsLimits, TestFormDNSNameserversFitsLimits. */
describe('what libc would not read is left out, and said', () => {
  test('the fourth nameserver', () => {
    const nameservers = ['192.0.2.1', '192.0.2.2', '192.0.2.3'];
    const { text, warnings } = conf({ dnsConfig: { nameservers } });
    expect(text.match(/^nameserver .*/gm)).toEqual([
      'nameserver 10.96.0.10',
      'nameserver 192.0.2.1',
      'nameserver 192.0.2.2',
    ]);
    expect(warnings).toEqual([
      {
        reason: 'DNSConfigForming',
        message:
          'Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: 10.96.0.10 192.0.2.1 192.0.2.2',
      },
    ]);
  });

  const searchesOf = (searches: string[]) => {
    const { text, warnings } = conf({ dnsPolicy: 'None', dnsConfig: { searches } });
    return { searches: (/^search (.*)/.exec(text)?.[1] ?? '').split(' '), warnings: warnings.length };
  };
  test('the 33rd search path', () => {
    const searches = Array.from({ length: 33 }, (_, i) => `d${i}.example`);
    expect(searchesOf(searches)).toEqual({ searches: searches.slice(0, 32), warnings: 1 });
  });
  test('a domain of more than 253 characters', () => {
    expect(searchesOf(['a.example', 'x'.repeat(254), 'b.example'])).toEqual({
      searches: ['a.example', 'b.example'],
      warnings: 1,
    });
  });
  test('what is beyond 2048 characters, and no more', () => {
    const searches = Array.from({ length: 9 }, (_, i) => `${i}${'x'.repeat(249)}`);
    expect(searchesOf(searches)).toEqual({ searches: searches.slice(0, 8), warnings: 1 });
    // 8 times 255 and 8 blanks.
    const exact = [...Array.from({ length: 8 }, (_, i) => `${i}${'x'.repeat(252)}`), 'y'.repeat(16)];
    expect(searchesOf(exact)).toEqual({ searches: exact, warnings: 0 });
  });
});

test('resolv.conf is read as the kubelet reads it', () => {
  const text = `# comment
domain old.example
nameserver 192.0.2.1 ; first
search a.example
search b.example. . c.example
nameserver\t2001:db8::1
options ndots:2 edns0
`;
  expect(parseResolvConf(text)).toEqual({
    nameservers: ['192.0.2.1', '2001:db8::1'],
    searches: ['b.example', '.', 'c.example'],
    options: ['ndots:2', 'edns0'],
  });
});
