import { describe, expect, test } from 'vitest';
import { nodeConfig, nodeFlags } from '../../../src/flags/node.ts';
import { givenFlags } from '../../support/command-line.ts';

const read = (args: string[], environment: Record<string, string> = {}) =>
  nodeConfig(givenFlags('node', args), { environment, hostname: 'Host-1' });

describe('the name of the node', () => {
  test.each([
    ['is that of --node-name', ['--node-name', 'a'], { NODE_NAME: 'b' }, 'a'],
    ['else that of NODE_NAME', [], { NODE_NAME: 'b' }, 'b'],
    ['else the host name', [], {}, 'host-1'],
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
    ...{
      maxPerCore: 32_768,
      min: 131_072,
      tcpTimeoutEstablishedSeconds: 86_400,
      tcpTimeoutCloseWaitSeconds: 3600,
    },
    ...{ tcpBeLiberal: false, udpTimeoutSeconds: 0, udpTimeoutStreamSeconds: 0 },
  });
});

test('the health of the node is told at an address, or nowhere', () => {
  expect(read([]).healthz).toEqual({ host: '0.0.0.0', port: 10_256 });
  expect(read(['--healthz-bind-address', ':7000']).healthz).toEqual({ host: '', port: 7000 });
  expect(read(['--healthz-bind-address', '0']).healthz).toBeUndefined();
  expect(read([]).flows).toEqual({ address: undefined, namespace: 'servicenet-system' });
  expect(read(['--flows-bind-address', ':10263']).flows.address).toEqual({ host: '', port: 10_263 });
});

test('a feature that is given twice, in one list or two, is one feature', () => {
  const { features } = read(['--features', 'announce', '--features', 'policy,announce,policy,egress']);
  expect(features).toEqual(['announce', 'policy', 'egress']);
});

/** By flag, values that it refuses: as arguments, and what the message says after the flag's name. */
const refused: Readonly<Record<string, readonly (readonly [readonly string[], string])[]>> = {
  '--node-name': [
    [['--node-name', ''], 'needs a value'],
    [['--node-name', 'node_1'], '"node_1" is not the name of a Node: a lowercase RFC 1123 subdomain must'],
  ],
  '--features': [
    [['--features', 'proxy,fly'], '"fly" is not one of proxy, announce, policy, egress'],
    [['--features', 'proxy,egress'], 'egress needs announce'],
    [['--features', ','], 'needs at least one item'],
  ],
  '--detect-local-mode': [
    [
      ['--detect-local-mode', 'Magic'],
      'must be one of ClusterCIDR, NodeCIDR, BridgeInterface, InterfaceNamePrefix',
    ],
  ],
  '--cluster-cidr': [
    [['--cluster-cidr', '10.0.0.0'], '"10.0.0.0" is not a CIDR'],
    [['--cluster-cidr', ''], 'needs at least one item'],
  ],
  '--pod-bridge-interface': [
    [['--detect-local-mode', 'BridgeInterface'], 'needs a value'],
    ...['a-name-of-17-chars', 'cni 0', '..'].map(
      (name) =>
        [
          ['--detect-local-mode', 'BridgeInterface', '--pod-bridge-interface', name],
          'must be the name of an interface: up to 15 of',
        ] as const,
    ),
  ],
  '--pod-interface-name-prefix': [
    [['--detect-local-mode', 'InterfaceNamePrefix'], 'needs a value'],
    [
      ['--detect-local-mode', 'InterfaceNamePrefix', '--pod-interface-name-prefix', 'veth*'],
      'must be the name of an interface: up to 15 of',
    ],
  ],
  '--nodeport-addresses': [
    [['--nodeport-addresses', 'eth0'], '"eth0" is not a CIDR'],
    [['--nodeport-addresses', 'primary,10.0.0.0/8'], '"primary" is not a CIDR'],
  ],
  '--flows-bind-address': [
    [['--flows-bind-address', '10263'], 'must be an address such as 127.0.0.1:8080 or :8080, or 0'],
    [['--flows-bind-address', 'localhost:1'], '"localhost" is not an IP address'],
  ],
  '--flows-namespace': [
    [['--flows-namespace', 'A'], '"A" is not the name of a namespace: a lowercase RFC 1123 label must'],
  ],
  '--healthz-bind-address': [
    [['--healthz-bind-address', '10256'], 'must be an address such as 127.0.0.1:8080 or :8080, or 0'],
    [['--healthz-bind-address', 'localhost:1'], '"localhost" is not an IP address'],
  ],
  '--metrics-bind-address': [
    [['--metrics-bind-address', ':65536'], 'must be an address such as 127.0.0.1:8080 or :8080, or 0'],
    [['--metrics-bind-address', 'a b:1'], 'must be an address such as 127.0.0.1:8080 or :8080, or 0'],
  ],
  '--min-sync-period': [[['--min-sync-period', '-1s'], 'must be a duration such as 15s or 500ms']],
  '--sync-period': [
    [['--sync-period', '1h30m'], 'must be a duration such as 15s or 500ms'],
    [['--sync-period', '0s'], 'must be greater than 0'],
  ],
  '--mark-mask': [
    [['--mark-mask', '7'], 'must be a mask in hexadecimal, such as 0x0fffc000'],
    [['--mark-mask', '0x0'], 'must be a mask in hexadecimal, such as 0x0fffc000'],
    [['--mark-mask', '0x100000000'], 'must be a mask in hexadecimal, such as 0x0fffc000'],
  ],
  '--conntrack-max-per-core': [
    [['--conntrack-max-per-core', '-1'], 'must be a whole number from 0 to 999999999'],
  ],
  '--conntrack-min': [[['--conntrack-min', '1.5'], 'must be a whole number from 0 to 999999999']],
  '--conntrack-tcp-timeout-established': [
    [['--conntrack-tcp-timeout-established', '86400'], 'must be a duration such as 15s or 500ms'],
    [['--conntrack-tcp-timeout-established', '500ms'], 'must be whole seconds'],
  ],
  '--conntrack-tcp-timeout-close-wait': [
    [['--conntrack-tcp-timeout-close-wait', '1d'], 'must be a duration such as 15s or 500ms'],
  ],
  '--conntrack-udp-timeout': [[['--conntrack-udp-timeout', '1.5s'], 'must be whole seconds']],
  '--conntrack-udp-timeout-stream': [[['--conntrack-udp-timeout-stream', '10ms'], 'must be whole seconds']],
  '--lease-namespace': [
    [['--lease-namespace', ''], '"" is not the name of a namespace: a lowercase RFC 1123 label must'],
    [['--lease-namespace', 'A'], '"A" is not the name of a namespace: a lowercase RFC 1123 label must'],
  ],
  '--on-api-loss': [[['--on-api-loss', 'wait'], 'must be one of hold, withdraw']],
  '--restart-grace': [[['--restart-grace', '0.5s'], 'must be whole seconds']],
  '--heartbeat-port': [[['--heartbeat-port', '0'], 'must be a whole number from 1 to 65535']],
  '--announce-on': [[['--announce-on', 'bridge'], 'must be one of macvlan, interface']],
  '--sysctl-folder': [[['--sysctl-folder', ''], 'needs a value']],
};

test.each(Object.entries(refused).flatMap(([flag, cases]) => cases.map((one) => [flag, ...one] as const)))(
  '%s refuses %j: %s',
  (flag, args, message) => {
    expect(() => read([...args])).toThrow(`${flag}: ${message}`);
  },
);

test('every flag of its own that takes a value has a value here that it refuses', () => {
  const { cluster: _cluster, logLevel: _logLevel, logFormat: _logFormat, ...own } = nodeFlags;
  const withValue = Object.values(own)
    .flatMap((entry): readonly { readonly flag: string }[] =>
      'flags' in entry ? Object.values(entry.flags).filter((one) => 'flag' in one) : [entry],
    )
    .filter(({ flag }) => flag.includes('<'))
    .map(({ flag }) => flag.split(' ')[0]);
  expect(Object.keys(refused).sort()).toEqual(withValue.sort());
});

test('the environment names no Node that cannot be, either', () => {
  expect(() => read([], { NODE_NAME: 'node 1' })).toThrow('--node-name: "node 1" is not the name of a Node');
});
