import { describe, expect, test } from 'vitest';
import { type HostPort, hostPortTable } from '../../../../src/emulation/machines/host-ports.ts';

const port: HostPort = {
  protocol: 'TCP',
  hostPort: 8080,
  hostIP: undefined,
  podIP: '10.244.0.5',
  containerPort: 80,
};

describe('the table of host ports', () => {
  test.each<[string, Partial<HostPort>, string]>([
    ['at every address', {}, 'meta nfproto ipv4 meta l4proto tcp tcp dport 8080 dnat ip to 10.244.0.5:80'],
    [
      'at one address',
      { hostIP: '172.18.0.1' },
      'ip daddr 172.18.0.1 meta l4proto tcp tcp dport 8080 dnat ip to 10.244.0.5:80',
    ],
    [
      'of UDP',
      { protocol: 'UDP', hostPort: 53, containerPort: 5353 },
      'meta nfproto ipv4 meta l4proto udp udp dport 53 dnat ip to 10.244.0.5:5353',
    ],
    [
      'of IPv6',
      { podIP: 'fd00:10:244::5' },
      'meta nfproto ipv6 meta l4proto tcp tcp dport 8080 dnat ip6 to [fd00:10:244::5]:80',
    ],
    [
      'at one IPv6 address',
      { podIP: 'fd00:10:244::5', hostIP: 'fd00:172:18::1' },
      'ip6 daddr fd00:172:18::1 meta l4proto tcp tcp dport 8080 dnat ip6 to [fd00:10:244::5]:80',
    ],
  ])('has a port %s in the ways of others and of the node itself', (_, changes, rule) => {
    const rules = rulesOf(hostPortTable([{ ...port, ...changes }]));
    const expected = `fib daddr type local ${rule}`;
    expect(rules).toEqual({ prerouting: [expected], output: [expected] });
  });

  test('has every port, in the order that Pods came in', () => {
    const { prerouting = [] } = rulesOf(hostPortTable([port, { ...port, hostPort: 8081 }]));
    expect(prerouting.map((rule) => /dport (\d+)/.exec(rule)?.[1])).toEqual(['8080', '8081']);
  });

  test('comes before Services, whose priority is -100', () => {
    const priorities = [...hostPortTable([port]).matchAll(/priority (-?\d+);/g)].map(([, number]) =>
      Number(number),
    );
    expect(priorities).toHaveLength(2);
    for (const priority of priorities) expect(priority).toBeLessThan(-100);
  });

  test('without ports is deleted, also where there is none', () => {
    expect(hostPortTable([])).toBe('table inet host-ports\ndelete table inet host-ports\n');
  });
});

/** The rules of each chain. */
function rulesOf(table: string): Readonly<Record<string, readonly string[]>> {
  const chains = [...table.matchAll(/chain (\w+) \{\n.*\n([^}]*)\}/g)];
  return Object.fromEntries(
    chains.map(([, name = '', body = '']) => [
      name,
      body
        .split('\n')
        .map((line) => line.trim())
        .filter((line) => line !== ''),
    ]),
  );
}
