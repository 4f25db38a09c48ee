import { describe, expect, test } from 'vitest';
import { isInScopes } from '../../../../../src/registry/core/resourcequota/strategy.ts';
import { increase, usageOf, userOf } from '../../../../../src/registry/core/resourcequota/usage.ts';

const one = 1_000_000_000n;
const core = (plural: string) => ({ group: '', plural });

function service(spec: object): object {
  return Object.fromEntries(usageOf(core('services'), { metadata: {}, ...{ spec } }));
}
function pod(parts: object): object {
  return Object.fromEntries(usageOf(core('pods'), { metadata: {}, ...parts }));
}

describe('a Service uses', () => {
  const ports = [{ port: 80 }, { port: 81, nodePort: 30001 }];
  const base = { 'count/services': one, services: one };
  test.each([
    ['itself', { type: 'ClusterIP', ports }, base],
    ['a node port for each port', { type: 'NodePort', ports }, { ...base, 'services.nodeports': 2n * one }],
    [
      'a load balancer with node ports',
      { type: 'LoadBalancer', ports },
      { ...base, 'services.nodeports': 2n * one, 'services.loadbalancers': one },
    ],
    [
      'a load balancer with the node ports that are named',
      { type: 'LoadBalancer', ports, allocateLoadBalancerNodePorts: false },
      { ...base, 'services.nodeports': one, 'services.loadbalancers': one },
    ],
  ])('%s', (_name, spec, expected) => {
    expect(service(spec)).toEqual(expected);
  });
});

describe('a Pod uses', () => {
  const container = (requests: object, limits = {}) => ({ name: 'c', resources: { requests, limits } });

  test('what its containers ask for together', () => {
    const containers = [container({ cpu: '100m' }, { memory: '1Gi' }), container({ cpu: 1, memory: '1Mi' })];
    expect(pod({ spec: { containers } })).toEqual({
      'count/pods': one,
      pods: one,
      cpu: 1_100_000_000n,
      'requests.cpu': 1_100_000_000n,
      memory: 1_048_576n * one,
      'requests.memory': 1_048_576n * one,
      'limits.memory': 1_073_741_824n * one,
    });
  });

  test('what the largest of its init containers asks for, if that is more', () => {
    const initContainers = [container({ cpu: '2' }), { ...container({ cpu: '1' }), restartPolicy: 'Always' }];
    expect(pod({ spec: { containers: [container({ cpu: '500m' })], initContainers } })).toMatchObject({
      cpu: 2n * one,
    });
  });

  test('only its place when it has ended', () => {
    expect(pod({ spec: { containers: [container({ cpu: '1' })] }, status: { phase: 'Failed' } })).toEqual({
      'count/pods': one,
    });
  });
});

test('claims use storage, by class', () => {
  const spec = { storageClassName: 'fast', resources: { requests: { storage: '1Ki' } } };
  expect(Object.fromEntries(usageOf(core('persistentvolumeclaims'), { metadata: {}, ...{ spec } }))).toEqual({
    'count/persistentvolumeclaims': one,
    persistentvolumeclaims: one,
    'requests.storage': 1024n * one,
    'fast.storageclass.storage.k8s.io/requests.storage': 1024n * one,
    'fast.storageclass.storage.k8s.io/persistentvolumeclaims': one,
  });
});

test('objects of other groups are counted by group', () => {
  const usage = usageOf({ group: 'apps', plural: 'deployments' }, { metadata: {} });
  expect([...usage]).toEqual([['count/deployments.apps', one]]);
});

test.each([
  ['count/widgets.example.com', { group: 'example.com', plural: 'widgets' }],
  ['count/secrets', core('secrets')],
  ['services.loadbalancers', core('services')],
  ['limits.cpu', core('pods')],
  ['requests.nvidia.com/gpu', core('pods')],
  ['requests.storage', core('persistentvolumeclaims')],
  ['gold.storageclass.storage.k8s.io/requests.storage', core('persistentvolumeclaims')],
  ['example.com/anything', undefined],
])('%s is used by the objects of %j', (resource, user) => {
  expect(userOf(resource)).toEqual(user);
});

test('an update uses what it uses more', () => {
  const usage = (entries: Record<string, bigint>) => new Map(Object.entries(entries));
  expect([...increase(usage({ a: 3n, b: 1n, c: 1n }), usage({ a: 1n, b: 1n, d: 1n }))]).toEqual([
    ['a', 2n],
    ['c', 1n],
  ]);
});

describe('scopes', () => {
  const quota = (spec: object) => ({ metadata: {}, ...{ spec } });
  const busy = {
    metadata: {},
    ...{
      spec: {
        containers: [{ resources: { requests: { cpu: '1' } } }],
        activeDeadlineSeconds: 0,
        priorityClassName: 'high',
      },
    },
  };
  const idle = { metadata: {}, ...{ spec: { containers: [{}] } } };
  const selector = (operator: string, values: string[] = []) => ({
    scopeSelector: { matchExpressions: [{ scopeName: 'PriorityClass', operator, values }] },
  });
  test.each<[object, string]>([
    [{}, 'busy idle'],
    [{ scopes: ['Terminating'] }, 'busy'],
    [{ scopes: ['NotTerminating'] }, 'idle'],
    [{ scopes: ['BestEffort'] }, 'idle'],
    [{ scopes: ['NotBestEffort', 'Terminating'] }, 'busy'],
    [{ scopes: ['NotBestEffort', 'NotTerminating'] }, ''],
    [selector('In', ['high']), 'busy'],
    [selector('NotIn', ['high']), ''],
    [selector('Exists'), 'busy'],
    [selector('DoesNotExist'), 'idle'],
  ])('%j choose %s', (spec, expected) => {
    const chosen = Object.entries({ busy, idle }).filter(([, object]) =>
      isInScopes(quota(spec), 'pods', object),
    );
    expect(chosen.map(([name]) => name).join(' ')).toBe(expected);
  });

  test('may be the classes of the volumes of claims', () => {
    const claim = (spec: object, status: object = {}) => ({ metadata: {}, spec, status });
    const claims = {
      none: claim({}),
      gold: claim({ volumeAttributesClassName: 'gold' }),
      changing: claim(
        { volumeAttributesClassName: 'silver' },
        {
          currentVolumeAttributesClassName: 'silver',
          modifyVolumeStatus: { targetVolumeAttributesClassName: 'gold' },
        },
      ),
    };
    const chosen = (operator: string, values?: string[]): string[] => {
      const requirement = { scopeName: 'VolumeAttributesClass', operator, ...(values && { values }) };
      const spec = { scopeSelector: { matchExpressions: [requirement] } };
      return Object.entries(claims)
        .filter(([, object]) => isInScopes(quota(spec), 'persistentvolumeclaims', object))
        .map(([name]) => name);
    };
    expect(chosen('Exists')).toEqual(['gold', 'changing']);
    expect(chosen('DoesNotExist')).toEqual(['none']);
    expect(chosen('In', ['gold'])).toEqual(['gold', 'changing']);
    expect(chosen('NotIn', ['gold'])).toEqual(['none', 'changing']);
    expect(isInScopes(quota({ scopes: ['Terminating'] }), 'persistentvolumeclaims', claims.gold)).toBe(false);
  });

  test('are never about other kinds', () => {
    expect(isInScopes(quota({ scopes: ['NotTerminating'] }), 'services', idle)).toBe(false);
  });
});
