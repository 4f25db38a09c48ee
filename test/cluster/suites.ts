/** The parts of Kubernetes' suite that the rig runs, and what of them it cannot run, each with its reason. */
export interface Suite {
  readonly name: string;
  /** Texts of tests to run: regular expressions of Go (`--ginkgo.focus`). */
  readonly focus: readonly string[];
  /** Regular expressions of tests that are left out, by the reason. */
  readonly skipped?: Readonly<Record<string, readonly string[]>>;
  /** The machine that the suite runs on, which is a client of the cluster. Default: `cp`. */
  readonly machine?: 'cp' | 'far';
  /** How long it may take. */
  readonly minutes: number;
  /** Whether it runs unless others are named. */
  readonly byDefault: boolean;
}

/** Why the tests of zones are left out. */
export const needsZones = 'wants three zones';

export const suites: readonly Suite[] = [
  {
    name: 'conformance',
    focus: [String.raw`\[sig-network\].*\[Conformance\]`],
    minutes: 30,
    byDefault: true,
  },
  {
    name: 'core',
    focus: [
      ...[String.raw`\[sig-network\] Services`, String.raw`\[sig-network\] Networking`],
      ...[String.raw`\[sig-network\] DNS`, String.raw`\[sig-network\] Conntrack`],
      ...[String.raw`\[sig-network\] EndpointSlice`, String.raw`\[sig-network\] HostPort`],
      ...[String.raw`\[sig-network\] KubeProxy`, String.raw`\[sig-network\] Traffic Distribution`],
    ],
    skipped: {
      'runs in `conformance`': [String.raw`\[Conformance\]`],
      'wants the Internet': [
        String.raw`\[Feature:Networking-IPv4\]`,
        String.raw`\[Feature:Networking-IPv6\]`,
        String.raw`\[Feature:Networking-DNS\]`,
      ],
      'reads the output of another iperf than that of Debian 12': [
        String.raw`\[Feature:Networking-Performance\]`,
      ],
      'runs in `load-balancers`': [String.raw`\[Feature:LoadBalancer\]`],
      'changes the machine, takes an hour, or needs a cloud': [
        ...[String.raw`\[Disruptive\]`, String.raw`\[Slow\]`, String.raw`\[Serial\]`],
        ...['ESIPP', String.raw`\[Feature:PerformanceDNS\]`, String.raw`\[Feature:SCTPConnectivity\]`],
      ],
      'wants ephemeral storage to be isolated, which a node here is not': ['evicted pods'],
      'wants an image that the rig does not make (regression-issue-74839)': ['invalid conntrack state bug'],
      [needsZones]: ['Traffic Distribution.*zone'],
    },
    minutes: 60,
    byDefault: false,
  },
  {
    name: 'load-balancers',
    focus: [String.raw`\[sig-network\] LoadBalancers.*\[Feature:LoadBalancer\]`],
    skipped: {
      'wants SSH to nodes or a cloud': ['ESIPP.*SSH', String.raw`\[Feature:GCE`],
      // By chance: it has three Pods on two nodes. MetalLB and kube-proxy lead to one node, too.
      'wants answers of two Pods, where layer 2 leads to one node, which may have one of them': [
        'switch session affinity for LoadBalancer service with Local traffic policy',
      ],
      'asks the health check port of an IPv4 Service at IPv6 addresses of nodes; with kube-proxy, too': [
        'should only target nodes with endpoints',
      ],
    },
    // A client in the nodes' own network is taken for a node.
    machine: 'far',
    minutes: 60,
    byDefault: false,
  },
  {
    name: 'network-policy',
    focus: [String.raw`\[sig-network\] Netpol`],
    skipped: {
      'the kernel has no SCTP': [String.raw`\[Feature:SCTP`, 'sctp', 'SCTP'],
      'wants two clusters of Pods for 20 minutes': [String.raw`\[Feature:UDPConnectivity\].*\[Slow\]`],
    },
    minutes: 90,
    byDefault: false,
  },
  {
    name: 'endpoints',
    focus: [
      ...[String.raw`\[sig-network\] EndpointSlice`, String.raw`\[sig-network\] EndpointSliceMirroring`],
      ...['Service endpoints latency', 'should serve a basic endpoint', 'should serve multiport endpoints'],
    ],
    minutes: 20,
    byDefault: false,
  },
];

/** The suite of Gateway API (test/gateway-api), which is not Kubernetes'. It wants the component `router`. */
export const gatewaySuite = 'gateway-api';
