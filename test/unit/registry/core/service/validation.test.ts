import { describe, expect, test } from 'vitest';
import type { ObjectMeta } from '../../../../../src/objects/meta.ts';
import type { ServicePort, ServiceSpec } from '../../../../../src/objects/types/core.generated.ts';
import { failure, ServiceWorld, v4 } from './world.ts';

const port: ServicePort = { port: 80 };
const label =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const nameForm =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const onlyLoadBalancer = "Forbidden: may only be used when `type` is 'LoadBalancer'";

function causes(spec: ServiceSpec, metadata: ObjectMeta = {}): string[] {
  const world = new ServiceWorld(v4);
  const result = failure(() => world.create('a', spec, { metadata }));
  expect(result.code).toBe(422);
  expect([world.ports(), world.addresses.size], 'a refused create takes nothing').toEqual([[], 0]);
  return result.causes;
}

describe('ports', () => {
  test.each<[string, ServicePort[], string[]]>([
    ['none', [], ['spec.ports: Required value']],
    ['unnamed', [port, { port: 81, name: 'b' }], ['spec.ports[0].name: Required value']],
    [
      'a name that is no label',
      [{ port: 80, name: 'A' }],
      [`spec.ports[0].name: Invalid value: "A": ${label}`],
    ],
    [
      'a name with a dot',
      [{ port: 80, name: 'a.b' }],
      ['spec.ports[0].name: Invalid value: "a.b": must not contain dots'],
    ],
    [
      'a name twice',
      [
        { port: 80, name: 'a' },
        { port: 81, name: 'a' },
      ],
      ['spec.ports[1].name: Duplicate value: "a"'],
    ],
    [
      'number 0, which the target takes over',
      [{ port: 0 }],
      [
        'spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive',
        'spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive',
      ],
    ],
    [
      'protocol',
      [{ port: 80, protocol: 'tcp' }],
      ['spec.ports[0].protocol: Unsupported value: "tcp": supported values: "SCTP", "TCP", "UDP"'],
    ],
    [
      'target name, all that is wrong with it',
      [{ port: 80, targetPort: '-8--0_' }],
      [
        'spec.ports[0].targetPort: Invalid value: "-8--0_": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
        'spec.ports[0].targetPort: Invalid value: "-8--0_": must contain at least one letter (a-z)',
        'spec.ports[0].targetPort: Invalid value: "-8--0_": must not contain consecutive hyphens',
        'spec.ports[0].targetPort: Invalid value: "-8--0_": must not begin or end with a hyphen',
      ],
    ],
    [
      'appProtocol',
      [{ port: 80, appProtocol: '' }],
      [
        'spec.ports[0].appProtocol: Invalid value: "": name part must be non-empty',
        `spec.ports[0].appProtocol: Invalid value: "": name part ${nameForm}`,
      ],
    ],
    [
      'the same number and protocol',
      [
        { ...port, name: 'a' },
        { ...port, name: 'b' },
        { ...port, name: 'c', protocol: 'UDP' },
      ],
      [
        'spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":0,"NodePort":0}',
      ],
    ],
    [
      'nodePort of a ClusterIP',
      [{ port: 80, nodePort: 30000 }],
      ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
    ],
  ])('%s', (_, ports, expected) => expect(causes({ ports })).toEqual(expected));

  test('a headless Service needs none', () => {
    expect(new ServiceWorld(v4).create('a', { clusterIP: 'None' }).spec.ports).toBeUndefined();
  });
});

describe('types', () => {
  test.each<[string, ServiceSpec, string[]]>([
    [
      'unknown',
      { type: 'Headless', ports: [port] },
      [
        'spec.type: Unsupported value: "Headless": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"',
      ],
    ],
    [
      'headless NodePort',
      { type: 'NodePort', clusterIP: 'None', ports: [port] },
      ['spec.clusterIPs[0]: Invalid value: "None": may not be set to \'None\' for NodePort services'],
    ],
    [
      'headless LoadBalancer',
      { type: 'LoadBalancer', clusterIP: 'None', ports: [port] },
      ['spec.clusterIPs[0]: Invalid value: "None": may not be set to \'None\' for LoadBalancer services'],
    ],
    [
      'ExternalName with everything that it must not have',
      { type: 'ExternalName', clusterIP: '10.96.0.5', ipFamilies: ['IPv4'], ipFamilyPolicy: 'SingleStack' },
      [
        'spec.clusterIPs: Forbidden: may not be set for ExternalName services',
        'spec.ipFamilies: Forbidden: may not be set for ExternalName services',
        'spec.ipFamilyPolicy: Forbidden: may not be set for ExternalName services',
        'spec.externalName: Required value',
      ],
    ],
    ['ExternalName "."', { type: 'ExternalName', externalName: '.' }, ['spec.externalName: Required value']],
  ])('%s', (_, spec, expected) => expect(causes(spec)).toEqual(expected));

  test('the value of a bad externalName is shown without its last dot', () => {
    expect(causes({ type: 'ExternalName', externalName: 'a_b.' })[0]).toMatch(
      /^spec\.externalName: Invalid value: "a_b": a lowercase RFC 1123 subdomain /,
    );
    const { spec } = new ServiceWorld(v4).create('a', {
      type: 'ExternalName',
      externalName: 'db.example.com.',
    });
    expect(spec.externalName).toBe('db.example.com.');
  });
});

describe('affinity, selector and external addresses', () => {
  test.each([
    [0, false],
    [-1, false],
    [1, true],
    [86400, true],
    [86401, false],
  ])('a timeout of %i s is accepted: %s', (timeoutSeconds, ok) => {
    const spec = {
      ports: [port],
      sessionAffinity: 'ClientIP',
      sessionAffinityConfig: { clientIP: { timeoutSeconds } },
    };
    if (ok) new ServiceWorld(v4).create('a', spec);
    else {
      expect(causes(spec)).toEqual([
        `spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: ${timeoutSeconds}: must be greater than 0 and less than 86400`,
      ]);
    }
  });

  test('selector keys and values are reported at the selector', () => {
    expect(causes({ ports: [port], selector: { 'a b': '-' } }).map((cause) => cause.slice(0, 40))).toEqual([
      'spec.selector: Invalid value: "a b": nam',
      'spec.selector: Invalid value: "-": a val',
    ]);
  });

  test('external addresses: spelled well first, then usable', () => {
    const externalIPs = [
      '192.0.2.1',
      'x',
      '192.0.02.1',
      '::ffff:192.0.2.1',
      '0.0.0.0',
      '::1',
      'fe80::1',
      'ff02::1',
    ];
    expect(causes({ ports: [port], externalIPs })).toEqual([
      'spec.externalIPs[1]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
      'spec.externalIPs[2]: Invalid value: "192.0.02.1": must not have leading 0s',
      'spec.externalIPs[3]: Invalid value: "::ffff:192.0.2.1": must not be an IPv4-mapped IPv6 address',
      'spec.externalIPs[4]: Invalid value: "0.0.0.0": may not be unspecified (0.0.0.0)',
      'spec.externalIPs[5]: Invalid value: "::1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
      'spec.externalIPs[6]: Invalid value: "fe80::1": may not be in the link-local range (169.254.0.0/16, fe80::/10)',
      'spec.externalIPs[7]: Invalid value: "ff02::1": may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)',
    ]);
  });
});

describe('load balancers and policies', () => {
  test.each<[string, ServiceSpec, string[]]>([
    [
      'fields of a LoadBalancer on a NodePort',
      {
        type: 'NodePort',
        ports: [port],
        loadBalancerSourceRanges: ['x'],
        allocateLoadBalancerNodePorts: true,
        loadBalancerClass: '!',
        healthCheckNodePort: 30000,
      },
      [
        `spec.LoadBalancerSourceRanges: ${onlyLoadBalancer}`,
        'spec.LoadBalancerSourceRanges[0]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
        `spec.allocateLoadBalancerNodePorts: ${onlyLoadBalancer}`,
        `spec.loadBalancerClass: ${onlyLoadBalancer}`,
        "spec.healthCheckNodePort: Invalid value: 30000: may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
      ],
    ],
    [
      'class that is no qualified name',
      { type: 'LoadBalancer', ports: [port], loadBalancerClass: '' },
      [
        'spec.loadBalancerClass: Invalid value: "": name part must be non-empty',
        `spec.loadBalancerClass: Invalid value: "": name part ${nameForm}`,
      ],
    ],
    [
      'ranges',
      {
        type: 'LoadBalancer',
        ports: [port],
        loadBalancerSourceRanges: [' 10.0.0.0/8 ', '10.0.0.1/8', '010.0.0.0/8'],
      },
      [
        'spec.LoadBalancerSourceRanges[1]: Invalid value: "10.0.0.1/8": must not have bits set beyond the prefix length',
        'spec.LoadBalancerSourceRanges[2]: Invalid value: "010.0.0.0/8": must not have leading 0s in IP or prefix length',
      ],
    ],
    [
      'external policy without access from outside',
      { ports: [port], externalTrafficPolicy: 'Local' },
      [
        'spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services',
      ],
    ],
    [
      'words that are none',
      {
        type: 'NodePort',
        ports: [port],
        sessionAffinity: 'X',
        externalTrafficPolicy: 'X',
        internalTrafficPolicy: 'X',
        trafficDistribution: 'X',
      },
      [
        'spec.sessionAffinity: Unsupported value: "X": supported values: "ClientIP", "None"',
        'spec.externalTrafficPolicy: Unsupported value: "X": supported values: "Cluster", "Local"',
        'spec.internalTrafficPolicy: Unsupported value: "X": supported values: "Cluster", "Local"',
        'spec.trafficDistribution: Unsupported value: "X": supported values: "PreferClose", "PreferSameZone", "PreferSameNode"',
      ],
    ],
  ])('%s', (_, spec, expected) => expect(causes(spec)).toEqual(expected));

  const annotation = 'service.beta.kubernetes.io/load-balancer-source-ranges';

  test('the annotation for source ranges counts only without the field', () => {
    const metadata = { annotations: { [annotation]: '10.0.0.0/8,,x' } };
    const at = `metadata.annotations[${annotation}]`;
    const notOne = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';
    expect(causes({ ports: [port] }, metadata)).toEqual([
      `${at}: ${onlyLoadBalancer}`,
      `${at}: Invalid value: "": ${notOne}`,
      `${at}: Invalid value: "x": ${notOne}`,
    ]);
    const ranges = { loadBalancerSourceRanges: ['10.0.0.0/8'] };
    new ServiceWorld(v4).create('a', { type: 'LoadBalancer', ports: [port], ...ranges }, { metadata });
  });

  test('both topology annotations must agree', () => {
    const annotations = {
      'service.kubernetes.io/topology-mode': 'Auto',
      'service.kubernetes.io/topology-aware-hints': 'Disabled',
    };
    expect(causes({ ports: [port] }, { annotations })).toEqual([
      'metadata.annotations[service.kubernetes.io/topology-mode]: Invalid value: "Auto": must match annotations[service.kubernetes.io/topology-aware-hints] when both are specified',
    ]);
  });
});

test('metadata comes first, then the annotation, the ports, and so on to the distribution', () => {
  const spec: ServiceSpec = {
    type: 'Odd',
    ports: [{ port: 0, protocol: 'X', targetPort: 1 }],
    selector: { '!': '' },
    sessionAffinity: 'X',
    externalIPs: ['x'],
    loadBalancerSourceRanges: ['x'],
    allocateLoadBalancerNodePorts: false,
    loadBalancerClass: 'x',
    externalTrafficPolicy: 'X',
    healthCheckNodePort: 1,
    internalTrafficPolicy: 'X',
    trafficDistribution: 'X',
  };
  const annotations = {
    '!': '',
    'service.kubernetes.io/topology-mode': 'a',
    'service.kubernetes.io/topology-aware-hints': 'b',
  };
  expect(
    causes(spec, { labels: { '!': '' }, annotations }).map((cause) => cause.slice(0, cause.indexOf(': '))),
  ).toEqual([
    'metadata.labels',
    'metadata.annotations',
    'metadata.annotations[service.kubernetes.io/topology-mode]',
    'spec.ports[0].port',
    'spec.ports[0].protocol',
    'spec.selector',
    'spec.sessionAffinity',
    'spec.externalIPs[0]',
    'spec.type',
    'spec.LoadBalancerSourceRanges',
    'spec.LoadBalancerSourceRanges[0]',
    'spec.allocateLoadBalancerNodePorts',
    'spec.loadBalancerClass',
    'spec.externalTrafficPolicy',
    'spec.healthCheckNodePort',
    'spec.internalTrafficPolicy',
    'spec.trafficDistribution',
  ]);
});

test('a Service name may start with a digit, but is a label', () => {
  const world = new ServiceWorld(v4);
  world.create('1a');
  expect(failure(() => world.create('A')).causes).toEqual([`metadata.name: Invalid value: "A": ${label}`]);
});

test('an allocation error hides every broken rule', () => {
  const spec = { type: 'NodePort', sessionAffinity: 'X', ports: [{ port: 0, nodePort: 1 }] };
  expect(causes(spec)).toEqual([
    'spec.ports[0].nodePort: Invalid value: 1: provided port is not in the valid range. The range of valid ports is 30000-32767',
  ]);
});

describe('warnings', () => {
  test.each<[string, ServiceSpec, string[]]>([
    [
      'headless',
      {
        clusterIP: 'None',
        loadBalancerIP: '192.0.2.1',
        externalIPs: ['192.0.2.1'],
        sessionAffinity: 'ClientIP',
      },
      [
        'spec.loadBalancerIP is ignored for headless services',
        'spec.externalIPs is ignored for headless services',
        'spec.SessionAffinity is ignored for headless services',
      ],
    ],
    [
      'spelling',
      {
        type: 'LoadBalancer',
        ports: [port],
        externalIPs: ['2001:DB8:0::1'],
        loadBalancerIP: '192.000.2.1',
        loadBalancerSourceRanges: ['2001:DB8::/32'],
      },
      [
        'spec.externalIPs[0]: IPv6 address "2001:DB8:0::1" should be in RFC 5952 canonical format ("2001:db8::1")',
        'spec.externalIPs is deprecated and may no longer be implemented in some clusters',
        'spec.loadBalancerIP: non-standard IP address "192.000.2.1" is invalid: use "192.0.2.1"',
        'spec.loadBalancerSourceRanges[0]: IPv6 CIDR value "2001:DB8::/32" should be in RFC 5952 canonical format ("2001:db8::/32")',
      ],
    ],
    [
      'externalIPs of an ExternalName',
      { type: 'ExternalName', externalName: 'x', externalIPs: ['192.0.2.1'] },
      ['spec.externalIPs is ignored when spec.type is "ExternalName"'],
    ],
    [
      'what is ignored or old',
      { ports: [port], externalName: 'x', trafficDistribution: 'PreferClose' },
      [
        'spec.externalName is ignored when spec.type is not "ExternalName"',
        'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"',
      ],
    ],
  ])('%s', (_, spec, expected) => {
    const world = new ServiceWorld(v4);
    world.create('a', spec);
    expect(world.warnings).toEqual(expected);
  });
});
