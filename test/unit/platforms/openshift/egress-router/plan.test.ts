import { describe, expect, test } from 'vitest';
import {
  routerConditions,
  routerObjects,
  type RouterSurroundings,
} from '../../../../../src/platforms/openshift/egress-router/plan.ts';
import type { Deployment } from '../../../../../src/objects/types/apps.generated.ts';
import type { EgressRouter } from '../../../../../src/objects/types/openshift.ts';

function routerWith(spec: Partial<EgressRouter['spec']>, name = 'a'): EgressRouter {
  return {
    ...{ apiVersion: 'network.operator.openshift.io/v1', kind: 'EgressRouter' },
    metadata: { name, namespace: 'shop', uid: `uid-${name}` },
    spec: {
      mode: 'Redirect',
      networkInterface: { macvlan: { mode: 'Bridge', master: 'eth7' } },
      addresses: [{ ip: '192.168.12.99/24', gateway: '192.168.12.1' }],
      ...spec,
    },
  };
}

const redirect = {
  redirectRules: [
    { destinationIP: '10.0.0.99', port: 80, protocol: 'UDP' },
    { destinationIP: '203.0.113.26', port: 8080, protocol: 'TCP', targetPort: 80 },
  ],
  fallbackIP: '203.0.113.27',
};

function configOf(router: EgressRouter): string {
  return routerObjects(router)?.attachment.spec?.config ?? '';
}

describe('the objects', () => {
  // bindata/egress-router/000-nad.yaml, by hand.
  test('the configuration is the one that the operator renders', () => {
    expect(configOf(routerWith({ redirect }))).toBe(
      '{"cniVersion":"0.4.0","type":"egress-router","name":"egress-router-cni-nad",' +
        '"ip":{"addresses":["192.168.12.99/24"],' +
        '"destinations":["80 UDP 10.0.0.99","8080 TCP 203.0.113.26 80"],' +
        '"fallbackIP":"203.0.113.27","gateway":"192.168.12.1"},' +
        '"log_file":"/tmp/egress-router-log","log_level":"debug"}',
    );
  });

  test('have the two names of every EgressRouter, and it as their controller', () => {
    const objects = routerObjects(routerWith({ redirect }));
    const metadata = {
      namespace: 'shop',
      ownerReferences: [
        {
          apiVersion: 'network.operator.openshift.io/v1',
          ...{ kind: 'EgressRouter', name: 'a', uid: 'uid-a', controller: true },
        },
      ],
    };
    expect(objects?.attachment.metadata).toEqual({ name: 'egress-router-cni-nad', ...metadata });
    const labels = { app: 'egress-router-cni' };
    expect(objects?.deployment.metadata).toEqual({
      ...{ name: 'egress-router-cni-deployment', labels, ...metadata },
    });
    expect(objects?.deployment.spec).toMatchObject({
      replicas: 1,
      selector: { matchLabels: labels },
      template: {
        metadata: {
          labels,
          annotations: {
            'k8s.v1.cni.cncf.io/networks':
              '[{"name":"egress-router-cni-nad","default-route":["192.168.12.1"]}]',
          },
        },
        spec: { containers: [{ command: ['/bin/sh', '-c', 'sleep infinity'] }] },
      },
    });
  });

  test('only the first address is rendered, and networkInterface is not', () => {
    const config = configOf(
      routerWith({ addresses: [{ ip: '192.0.2.5/24', gateway: '192.0.2.1' }, { ip: '192.0.2.6/24' }] }),
    );
    expect(config).toContain('"addresses":["192.0.2.5/24"]');
    expect(config).not.toMatch(/192\.0\.2\.6|eth7|Bridge/);
  });

  test('what is no address is left empty', () => {
    for (const ip of ['192.0.2.5', '192.0.2.5/33', 'x', '']) {
      expect(configOf(routerWith({ addresses: [{ ip, gateway: '192.0.2.0/24' }] }))).toContain(
        '"ip":{"addresses":[""],"destinations":[],"gateway":""}',
      );
    }
  });

  test('there are none without an address', () => {
    expect(routerObjects(routerWith({ addresses: [] }))).toBeUndefined();
  });
});

describe('the status', () => {
  const now = Date.UTC(2026, 10, 25, 12);
  const ownedBy = (name: string): { metadata: Deployment['metadata'] } => {
    const reference = { apiVersion: 'network.operator.openshift.io/v1', kind: 'EgressRouter', name };
    return { metadata: { ownerReferences: [{ ...reference, uid: `uid-${name}`, controller: true }] } };
  };
  const around = (
    owner: string,
    available: 'True' | 'False',
    change: Partial<RouterSurroundings> = {},
  ): RouterSurroundings => ({
    attachment: ownedBy(owner),
    deployment: {
      ...ownedBy(owner),
      spec: { selector: {}, template: {} },
      status: {
        conditions: [
          { type: 'Available', status: available, reason: 'MinimumReplicasUnavailable', message: 'no Pod.' },
        ],
      },
    },
    others: [],
    ...change,
  });
  const said = (router: EgressRouter, surroundings: RouterSurroundings): string =>
    routerConditions(router, surroundings, now)
      .map(({ type, status, reason }) => `${type}=${status} ${reason}`)
      .join(', ');

  const absent = { attachment: undefined, deployment: undefined };
  const cases: readonly (readonly [
    what: string,
    router: EgressRouter,
    around: RouterSurroundings,
    string,
  ])[] = [
    [
      'a Pod runs',
      routerWith({}),
      around('a', 'True'),
      'Available=True AsExpected, Degraded=False AsExpected',
    ],
    [
      'no Pod runs',
      routerWith({}),
      around('a', 'False'),
      'Available=False MinimumReplicasUnavailable, Degraded=False AsExpected',
    ],
    [
      'it has the objects, and a rival',
      routerWith({}),
      around('a', 'True', { others: ['b'] }),
      'Available=True AsExpected, Degraded=True RouterNameCollision',
    ],
    [
      'a rival has the objects',
      routerWith({}),
      around('b', 'True', { others: ['b'] }),
      'Available=False RouterNameCollision, Degraded=True RouterNameCollision',
    ],
    [
      'the objects of one that has gone are still there',
      routerWith({}),
      around('b', 'True'),
      'Available=False RouterNameCollision, Degraded=True RouterNameCollision',
    ],
    [
      'the objects were deleted',
      routerWith({}),
      around('a', 'True', absent),
      'Available=False ObjectsMissing, Degraded=False AsExpected',
    ],
    [
      'no address',
      routerWith({ addresses: [] }),
      around('a', 'True', { others: ['b'] }),
      'Available=False NoAddresses, Degraded=True NoAddresses',
    ],
    [
      'an address without a prefix length',
      routerWith({ addresses: [{ ip: '192.0.2.1' }] }),
      around('a', 'False'),
      'Available=False MinimumReplicasUnavailable, Degraded=True InvalidAddress',
    ],
    [
      'a gateway with a prefix length',
      routerWith({ addresses: [{ ip: '192.0.2.1/24', gateway: '192.0.2.1/24' }] }),
      around('a', 'False'),
      'Available=False MinimumReplicasUnavailable, Degraded=True InvalidAddress',
    ],
    [
      'the server refuses the objects',
      routerWith({}),
      around('a', 'True', { ...absent, failure: 'no' }),
      'Available=False EgressRouterError, Degraded=True EgressRouterError',
    ],
  ];
  test.each(cases)('%s', (_, router, surroundings, expected) => {
    expect(said(router, surroundings)).toBe(expected);
  });

  test('is labelled as an addition, and a time moves with its status alone', () => {
    const [first] = routerConditions(routerWith({}), around('a', 'False'), now);
    expect(first?.message).toBe('no Pod. Said by servicenet; OpenShift says nothing here.');
    const before = routerConditions(routerWith({}), around('a', 'False'), now - 3_600_000);
    const router = { ...routerWith({}), status: { conditions: [...before] } };
    const times = routerConditions(router, around('a', 'True'), now).map(
      ({ lastTransitionTime }) => lastTransitionTime,
    );
    expect(times).toEqual(['2026-11-25T12:00:00Z', '2026-11-25T11:00:00Z']);
  });
});
