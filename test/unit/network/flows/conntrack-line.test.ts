import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readConntrackLine } from '../../../../src/network/flows/conntrack.ts';

describe('a line of conntrack', () => {
  it('is a connection of IPv4', () => {
    const line =
      'tcp      6 120 SYN_SENT src=10.244.0.29 dst=10.96.155.120 sport=47882 dport=80 [UNREPLIED] src=10.244.1.225 dst=10.244.0.29 sport=8080 dport=47882 mark=0 use=1';
    expect(readConntrackLine(line)).toEqual({
      ...{ event: 'listed', protocol: 'TCP', isReplied: false, ageSeconds: 0 },
      original: {
        ...{ source: '10.244.0.29', sourcePort: 47_882, destination: '10.96.155.120', destinationPort: 80 },
      },
      reply: {
        ...{ source: '10.244.1.225', sourcePort: 8080, destination: '10.244.0.29', destinationPort: 47_882 },
      },
    });
  });

  it('is a connection of IPv6, whose addresses are as Kubernetes writes them', () => {
    const line =
      'udp      17 30 src=fd00:10:244:0:0:0:0:1d dst=fd00:10:96:0:0:0:0:a sport=40000 dport=53 src=fd00:172:18::ffff:1 dst=fd00:10:244::1d sport=53 dport=40000 mark=0 use=1';
    expect(readConntrackLine(line)).toMatchObject({
      ...{ protocol: 'UDP', isReplied: true },
      original: { source: 'fd00:10:244::1d', destination: 'fd00:10:96::a' },
      reply: { source: 'fd00:172:18::ffff:1', destination: 'fd00:10:244::1d' },
    });
  });

  it('is a connection that is there, with its age', () => {
    const line =
      'tcp      6 110 TIME_WAIT src=10.244.0.29 dst=10.96.155.120 sport=34180 dport=80 src=10.244.1.225 dst=10.244.0.29 sport=8080 dport=34180 [ASSURED] mark=0 delta-time=10 [start=Sun Nov 29 11:48:50 2026] use=1';
    expect(readConntrackLine(line)).toMatchObject({ event: 'listed', isReplied: true, ageSeconds: 10 });
  });

  it.each([
    '',
    'conntrack v1.4.7 (conntrack-tools): 6 flow entries have been shown.',
    'icmp     1 30 src=10.0.0.1 dst=10.0.0.2 type=8 code=0 id=1 [UNREPLIED] src=10.0.0.2 dst=10.0.0.1 type=0 code=0 id=1',
    'tcp      6 120 SYN_SENT src=10.0.0.1 dst=10.0.0.2 sport=1 dport=80',
    'tcp      6 120 SYN_SENT src= dst= sport= dport= src= dst= sport= dport=',
  ])('is none: %j', (line) => {
    expect(readConntrackLine(line)).toBeUndefined();
  });

  it('may be any text', () => {
    const word = fc.oneof(
      fc.constantFrom('tcp', 'ipv4', 'src=10.0.0.1', 'dst=::', 'sport=1', 'dport=x'),
      fc.string(),
    );
    fc.assert(
      fc.property(fc.array(word), (words) => {
        const read = readConntrackLine(words.join(' '));
        expect(read === undefined || read.original.source !== '').toBe(true);
      }),
    );
  });
});
