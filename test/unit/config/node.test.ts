import { hostname } from 'node:os';
import { describe, expect, test } from 'vitest';
import { program } from '../../../src/commands/command-line/program.ts';
import { nodeConfig } from '../../../src/config/node.ts';

/** The options that commander gives for a command line. */
function optionsOf(...args: string[]): Record<string, unknown> {
  const command = program().commands.find((one) => one.name() === 'node');
  if (command === undefined) throw new Error('there is no command node');
  command.parseOptions(args);
  return command.opts();
}

const read = (args: string[], environment: Record<string, string> = {}) =>
  nodeConfig(optionsOf(...args), false, environment);

describe('the name of the node', () => {
  test.each([
    ['is that of --node-name', ['--node-name', 'a'], { NODE_NAME: 'b' }, 'a'],
    ['else that of NODE_NAME', [], { NODE_NAME: 'b' }, 'b'],
    ['else the host name', [], {}, hostname().toLowerCase()],
    ['is in lower case, as kubelet writes it', ['--node-name', ' Node-1 '], {}, 'node-1'],
  ])('%s', (_name, args, environment, expected) => {
    expect(read(args, environment).nodeName).toBe(expected);
  });
});

describe('how Pods are recognised', () => {
  test.each([
    ['by the cluster CIDRs', ['--cluster-cidr', '10.0.0.0/8,fd00::/16'], { mode: 'ClusterCIDR' }],
    ['by the CIDRs of the Node', ['--detect-local-mode', 'NodeCIDR'], { mode: 'NodeCIDR' }],
    [
      'by a bridge',
      ['--detect-local-mode', 'BridgeInterface', '--pod-bridge-interface', 'cni0'],
      { mode: 'BridgeInterface', interface: 'cni0' },
    ],
    [
      'by the names of interfaces',
      ['--detect-local-mode', 'InterfaceNamePrefix', '--pod-interface-name-prefix', 'veth'],
      { mode: 'InterfaceNamePrefix', prefix: 'veth' },
    ],
  ])('%s', (_name, args, expected) => {
    expect(read(args).detectLocal).toMatchObject(expected);
  });
});

test('node ports answer at the primary addresses, or at those of CIDRs', () => {
  expect(read([]).nodePortAddresses).toBe('primary');
  expect(read(['--nodeport-addresses', '192.0.2.0/24']).nodePortAddresses).toMatchObject([
    { canonical: '192.0.2.0/24' },
  ]);
});

test('connection tracking has the defaults of kube-proxy, in seconds', () => {
  expect(read([]).conntrack).toEqual({
    ...{ maxPerCore: 32_768, min: 131_072, tcpTimeoutEstablished: 86_400, tcpTimeoutCloseWait: 3600 },
    ...{ tcpBeLiberal: false, udpTimeout: 0, udpTimeoutStream: 0 },
  });
});

test('the health of the node is told at an address, or nowhere', () => {
  expect(read([]).healthz).toEqual({ host: '0.0.0.0', port: 10_256 });
  expect(read(['--healthz-bind-address', ':7000']).healthz).toEqual({ host: '', port: 7000 });
  expect(read(['--healthz-bind-address', '0']).healthz).toBeUndefined();
});

test.each([
  ['a feature that is not known', ['--features', 'proxy,fly'], '--features: "fly"'],
  ['egress without what announces its addresses', ['--features', 'proxy,egress'], 'egress needs announce'],
  ['a mask that is no hexadecimal number', ['--mark-mask', '7'], '--mark-mask'],
  ['a health address that is a name', ['--healthz-bind-address', 'localhost:1'], '--healthz-bind-address'],
  ['an empty mask', ['--mark-mask', '0x0'], '--mark-mask'],
  ['a cluster CIDR that is none', ['--cluster-cidr', '10.0.0.0'], '--cluster-cidr'],
  ['node port addresses that are no CIDR', ['--nodeport-addresses', 'eth0'], '--nodeport-addresses'],
  ['a mode that is not known', ['--detect-local-mode', 'Magic'], '--detect-local-mode'],
  ['a bridge without a name', ['--detect-local-mode', 'BridgeInterface'], '--pod-bridge-interface'],
  [
    'a name that no interface can have',
    ['--detect-local-mode', 'BridgeInterface', '--pod-bridge-interface', 'a-name-of-17-chars'],
    '--pod-bridge-interface',
  ],
  ['no time between full comparisons', ['--sync-period', '0s'], '--sync-period'],
])('refuses %s', (_name, args, message) => {
  expect(() => read(args)).toThrow(message);
});
