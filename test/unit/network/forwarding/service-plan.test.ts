import { describe, expect, it } from 'vitest';
import type {
  EndpointHints,
  Endpoint as SliceEndpoint,
} from '../../../../src/objects/types/discovery.generated.ts';
import type { ServiceSpec } from '../../../../src/objects/types/core.generated.ts';
import {
  endpoint,
  flow,
  goneEndpoint,
  ips,
  local,
  node,
  notReadyEndpoint,
  onlyPort,
  options,
  plan,
  localPodIP,
  service,
  slice,
  terminatingEndpoint,
} from './fixtures.ts';
import { ForwardingPlanner } from '../../../../src/network/forwarding/planner.ts';

const internalLocal = { internalTrafficPolicy: 'Local' };
const nodePort = { type: 'NodePort', ports: [{ name: 'http', protocol: 'TCP', port: 80, nodePort: 30080 }] };
const externalLocal = { ...nodePort, externalTrafficPolicy: 'Local' };

function hinted(nodes: string[], zones: string[]): { hints: EndpointHints } {
  const names = (list: string[]): { name: string }[] => list.map((name) => ({ name }));
  return { hints: { forNodes: names(nodes), forZones: names(zones) } };
}

interface Row {
  readonly name: string;
  readonly spec?: Partial<ServiceSpec>;
  readonly endpoints: SliceEndpoint[];
  /** The zone of the node; `a` where it is not said. */
  readonly zone?: string;
  readonly cluster: string[];
  readonly local: string[];
}

const localIP = '10.1.0.1';
const localIP2 = '10.1.0.2';
const remoteIP = '10.1.1.1';
const remoteIP2 = '10.1.1.2';

const rows: Row[] = [
  {
    name: 'E1: policy Cluster uses no local list',
    endpoints: [local(localIP), endpoint(remoteIP)],
    cluster: [localIP, remoteIP],
    local: [],
  },
  {
    name: 'E1: internal policy Local of a Service that is not reached from outside uses no cluster list',
    spec: internalLocal,
    endpoints: [local(localIP), endpoint(remoteIP)],
    cluster: [],
    local: [localIP],
  },
  {
    name: 'E1: internal policy Local of a Service with a node port uses both lists',
    spec: { ...internalLocal, ...nodePort },
    endpoints: [local(localIP), endpoint(remoteIP)],
    cluster: [localIP, remoteIP],
    local: [localIP],
  },
  {
    name: 'E1: external policy Local uses both lists',
    spec: externalLocal,
    endpoints: [local(localIP), endpoint(remoteIP)],
    cluster: [localIP, remoteIP],
    local: [localIP],
  },
  {
    name: 'E1: external policy Local of a port that nothing outside reaches uses no local list',
    spec: { type: 'LoadBalancer', externalTrafficPolicy: 'Local' },
    endpoints: [local(localIP), endpoint(remoteIP)],
    cluster: [localIP, remoteIP],
    local: [],
  },
  {
    name: 'E2: while one is ready, terminating ones are not used',
    endpoints: [local(localIP, { conditions: terminatingEndpoint }), endpoint(remoteIP)],
    cluster: [remoteIP],
    local: [],
  },
  {
    name: 'E2: when none is ready, all that serve and terminate are used, hints or not',
    endpoints: [
      local(localIP, { conditions: terminatingEndpoint, ...hinted(['elsewhere'], ['b']) }),
      endpoint(remoteIP, { conditions: terminatingEndpoint, ...hinted(['here'], ['a']) }),
      endpoint(remoteIP2, { conditions: goneEndpoint }),
    ],
    cluster: [localIP, remoteIP],
    local: [],
  },
  {
    name: 'E3: a local endpoint that terminates is used when no local one is ready, though a remote one is',
    spec: externalLocal,
    endpoints: [local(localIP, { conditions: terminatingEndpoint }), endpoint(remoteIP)],
    cluster: [remoteIP],
    local: [localIP],
  },
  {
    name: 'E3: the local list is ready where the cluster list is',
    spec: externalLocal,
    endpoints: [
      local(localIP),
      local(localIP2, { conditions: terminatingEndpoint }),
      endpoint(remoteIP, { conditions: terminatingEndpoint }),
    ],
    cluster: [localIP],
    local: [localIP],
  },
  {
    name: 'E3: hints do not apply to the local list',
    spec: externalLocal,
    endpoints: [local(localIP, hinted(['elsewhere'], ['b'])), endpoint(remoteIP, hinted(['here'], ['a']))],
    cluster: [remoteIP],
    local: [localIP],
  },
  {
    name: 'E4: node hints, all have one and one names this node',
    endpoints: [
      endpoint(remoteIP, hinted(['here', 'elsewhere'], ['a'])),
      endpoint(remoteIP2, hinted(['elsewhere'], ['a'])),
    ],
    cluster: [remoteIP],
    local: [],
  },
  {
    name: 'E4: node hints that name other nodes only leave the zone to decide',
    endpoints: [
      endpoint(remoteIP, hinted(['elsewhere'], ['a'])),
      endpoint(remoteIP2, hinted(['other'], ['b'])),
    ],
    cluster: [remoteIP],
    local: [],
  },
  {
    name: 'E4: one ready endpoint without a node hint switches node hints off',
    endpoints: [endpoint(remoteIP, hinted(['here'], ['b'])), endpoint(remoteIP2, hinted([], ['a']))],
    cluster: [remoteIP2],
    local: [],
  },
  {
    name: 'E4: one ready endpoint without hints switches all off',
    endpoints: [endpoint(remoteIP, hinted(['here'], ['a'])), endpoint(remoteIP2)],
    cluster: [remoteIP, remoteIP2],
    local: [],
  },
  {
    name: 'E4: an endpoint that is not ready is not asked for hints',
    endpoints: [
      endpoint(remoteIP, hinted([], ['a'])),
      endpoint(localIP, hinted([], ['b'])),
      endpoint(remoteIP2, { conditions: terminatingEndpoint }),
    ],
    cluster: [remoteIP],
    local: [],
  },
  {
    name: 'E4: an endpoint that is not ready does not make its zone preferred',
    endpoints: [
      endpoint(remoteIP, { conditions: terminatingEndpoint, ...hinted([], ['a']) }),
      endpoint(remoteIP2, hinted([], ['b'])),
    ],
    cluster: [remoteIP2],
    local: [],
  },
  {
    name: 'E4: an endpoint may have hints for several zones',
    endpoints: [endpoint(remoteIP, hinted([], ['b', 'a'])), endpoint(remoteIP2, hinted([], ['b', 'c']))],
    cluster: [remoteIP],
    local: [],
  },
  {
    name: 'E4: no endpoint names the zone',
    endpoints: [endpoint(remoteIP, hinted([], ['b'])), endpoint(remoteIP2, hinted([], ['c']))],
    cluster: [remoteIP, remoteIP2],
    local: [],
  },
  {
    name: 'E4: a node without a zone uses no zone hints',
    zone: '',
    endpoints: [endpoint(remoteIP, hinted([], [''])), endpoint(remoteIP2, hinted([], ['a']))],
    cluster: [remoteIP, remoteIP2],
    local: [],
  },
  {
    name: 'E4: a node without a zone uses node hints',
    zone: '',
    endpoints: [endpoint(remoteIP, hinted(['here'], [])), endpoint(remoteIP2, hinted(['elsewhere'], []))],
    cluster: [remoteIP],
    local: [],
  },
  {
    name: 'E7: what does not serve, and what is not ready and does not terminate, is never used',
    spec: externalLocal,
    endpoints: [
      local(localIP, { conditions: goneEndpoint }),
      local(localIP2, { conditions: notReadyEndpoint }),
    ],
    cluster: [],
    local: [],
  },
  {
    name: 'E8: trafficDistribution without hints has no effect',
    spec: { trafficDistribution: 'PreferSameNode' },
    endpoints: [local(localIP), endpoint(remoteIP)],
    cluster: [localIP, remoteIP],
    local: [],
  },
];

describe('usable endpoints', () => {
  it.each(rows)('$name', ({ spec, endpoints, zone, cluster, local }) => {
    const labels = zone === undefined ? {} : { labels: { 'topology.kubernetes.io/zone': zone } };
    const port = onlyPort(plan(service(spec), [slice(endpoints)], {}, labels));
    expect([ips(port.clusterEndpoints), ips(port.localEndpoints)]).toEqual([cluster, local]);
  });

  it.each([
    ['none at all', [], 'reject NoEndpoints'],
    [
      'none that may be used',
      [endpoint(remoteIP, { conditions: goneEndpoint }), local(localIP, { conditions: notReadyEndpoint })],
      'reject NoEndpoints',
    ],
    ['a ready one elsewhere', [endpoint(remoteIP)], 'drop NoLocalEndpoints'],
    [
      'one elsewhere that serves and terminates',
      [endpoint(remoteIP, { conditions: terminatingEndpoint })],
      'drop NoLocalEndpoints',
    ],
  ])('E6: policy Local with %s', (_, endpoints, expected) => {
    const planned = plan(service(internalLocal), [slice(endpoints)]);
    expect(flow(planned, localPodIP, '10.96.0.10', 80)).toBe(expected);
  });
});

describe('E5: labels of the node', () => {
  const zoned = (zone: string, other = 'x') =>
    node({ labels: { 'topology.kubernetes.io/zone': zone, 'example.com/other': other } });

  it('asks for a full plan when the zone changes, and for none when another label does', () => {
    const planner = new ForwardingPlanner(zoned('a'), options());
    expect(planner.setNode(zoned('a', 'y'))).toBe(false);
    expect(planner.setNode(zoned('b'))).toBe(true);
  });

  it('plans by the new zone once the Services are applied again', () => {
    const input = {
      key: 'default/web',
      service: service(),
      slices: [slice([endpoint(remoteIP, hinted([], ['a'])), endpoint(remoteIP2, hinted([], ['b']))])],
    };
    const planner = new ForwardingPlanner(zoned('a'), options());
    planner.apply([input]);
    planner.setNode(zoned('b'));
    expect(planner.apply([input])).toHaveLength(1);
    expect(ips(onlyPort(planner.plan).clusterEndpoints)).toEqual([remoteIP2]);
  });
});
