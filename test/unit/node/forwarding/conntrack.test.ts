import { expect, it } from 'vitest';
import { listedFlows } from '../../../../src/node/forwarding/conntrack.ts';

// As conntrack 1.4.7 prints them.
const listing = [
  'udp      17 29 src=10.244.1.2 dst=10.96.0.10 sport=4001 dport=53 src=10.244.1.3 dst=10.244.1.2 sport=5353 dport=4001 [ASSURED] mark=0 use=1',
  'udp      17 9 src=10.244.1.2 dst=10.96.0.11 sport=4002 dport=53 [UNREPLIED] src=10.96.0.11 dst=10.244.1.2 sport=53 dport=4002 mark=0 zone=5 use=1',
  'udp      17 9 src=10.244.1.2 dst=10.96.0.12 sport=4003 dport=53 packets=1 bytes=32 [UNREPLIED] src=10.244.1.9 dst=192.0.2.11 sport=53 dport=4003 packets=0 bytes=0 mark=0 use=2',
  'unknown  99 9 src=10.244.1.2 dst=10.96.0.12 [UNREPLIED] src=10.96.0.12 dst=10.244.1.2 use=1',
  '',
].join('\n');

it('reads the destination of a flow, and where its answers come from', () => {
  expect([...listedFlows('IPv4', listing)]).toEqual([
    { family: 'IPv4', destination: '10.96.0.10', port: 53, replySource: '10.244.1.3', replyPort: 5353 },
    { family: 'IPv4', destination: '10.96.0.11', port: 53, replySource: '10.96.0.11', replyPort: 53 },
    { family: 'IPv4', destination: '10.96.0.12', port: 53, replySource: '10.244.1.9', replyPort: 53 },
  ]);
});

it('writes IPv6 addresses as plans do', () => {
  const line =
    'udp      17 9 src=fd00:244:1::2 dst=fd00:96:0:0:1::a sport=4002 dport=53 [UNREPLIED] src=::ffff:0:0 dst=fd00:244:1::2 sport=53 dport=4002 mark=0 use=1';
  expect([...listedFlows('IPv6', line)]).toMatchObject([{ destination: 'fd00:96::1:0:0:a' }]);
});
