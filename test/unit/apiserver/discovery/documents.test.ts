import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { DiscoveredResource } from '../../../../src/apiserver/discovery/discovered-resource.ts';
import {
  aggregatedDiscovery,
  apiGroup,
  apiGroupList,
  apiResourceList,
  apiVersions,
  compareVersions,
  groupResources,
} from '../../../../src/apiserver/discovery/documents.ts';

const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

function resource(
  group: string,
  version: string,
  plural: string,
  kind: string,
  more: Partial<DiscoveredResource> = {},
): DiscoveredResource {
  return {
    group,
    version,
    plural,
    singular: kind.toLowerCase(),
    kind,
    namespaced: true,
    shortNames: [],
    categories: [],
    verbs,
    schema: '',
    subresources: [],
    custom: false,
    ...more,
  };
}

const services = resource('', 'v1', 'services', 'Service', {
  shortNames: ['svc'],
  categories: ['all'],
  storageVersionHash: '0/CO1lhkEBI=',
  subresources: [
    { name: 'status', kind: 'Service', verbs: ['get', 'patch', 'update'] },
    { name: 'proxy', kind: 'ServiceProxyOptions', verbs: ['get'] },
  ],
});
const deployments = resource('apps', 'v1', 'deployments', 'Deployment', {
  subresources: [
    { name: 'scale', kind: 'Scale', verbs: ['get'], kindGroup: 'autoscaling', kindVersion: 'v1' },
  ],
});
const slices = resource('discovery.k8s.io', 'v1', 'endpointslices', 'EndpointSlice', {
  storageVersionHash: 'qgS0xkrxYAI=',
});
const widgets = (version: string): DiscoveredResource =>
  resource('a.example.com', version, 'widgets', 'Widget', { custom: true });

const groups = groupResources([widgets('v1beta1'), widgets('v1'), services, slices, deployments], []);
const group = (name: string) => groups.get(name) ?? expect.unreachable(name);

describe('documents', () => {
  test('an APIResourceList has the recorded rows, sorted by name', () => {
    expect(JSON.stringify(apiResourceList('', 'v1', [services]))).toBe(
      '{"kind":"APIResourceList","groupVersion":"v1","resources":[' +
        '{"name":"services","singularName":"service","namespaced":true,"kind":"Service","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"shortNames":["svc"],"categories":["all"],"storageVersionHash":"0/CO1lhkEBI="},' +
        '{"name":"services/proxy","singularName":"","namespaced":true,"kind":"ServiceProxyOptions","verbs":["get"]},' +
        '{"name":"services/status","singularName":"","namespaced":true,"kind":"Service","verbs":["get","patch","update"]}]}',
    );
    expect(JSON.stringify(apiResourceList('discovery.k8s.io', 'v1', [slices]))).toBe(
      '{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"discovery.k8s.io/v1","resources":[' +
        '{"name":"endpointslices","singularName":"endpointslice","namespaced":true,"kind":"EndpointSlice","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"storageVersionHash":"qgS0xkrxYAI="}]}',
    );
    expect(apiResourceList('apps', 'v1', [deployments])).toMatchObject({
      resources: [
        { name: 'deployments' },
        { name: 'deployments/scale', group: 'autoscaling', version: 'v1', kind: 'Scale' },
      ],
    });
  });

  test('an APIGroup prefers its best version', () => {
    expect(JSON.stringify(apiGroup(group('discovery.k8s.io')))).toBe(
      '{"kind":"APIGroup","apiVersion":"v1","name":"discovery.k8s.io","versions":[{"groupVersion":"discovery.k8s.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"discovery.k8s.io/v1","version":"v1"}}',
    );
    expect(apiGroup(group('a.example.com'))).toMatchObject({
      versions: [{ version: 'v1' }, { version: 'v1beta1' }],
      preferredVersion: { version: 'v1' },
    });
  });

  test('the group list leaves the core group out and puts custom groups last', () => {
    expect(apiGroupList([...groups.values()].filter(({ name }) => name !== ''))).toMatchObject({
      kind: 'APIGroupList',
      groups: [{ name: 'apps' }, { name: 'discovery.k8s.io' }, { name: 'a.example.com' }],
    });
    expect(apiVersions(group(''), '127.0.0.1:6443')).toEqual({
      kind: 'APIVersions',
      versions: ['v1'],
      serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: '127.0.0.1:6443' }],
    });
  });

  test('aggregated discovery nests subresources', () => {
    expect(aggregatedDiscovery([group('apps')])).toEqual({
      kind: 'APIGroupDiscoveryList',
      apiVersion: 'apidiscovery.k8s.io/v2',
      metadata: {},
      items: [
        {
          metadata: { name: 'apps' },
          versions: [
            {
              version: 'v1',
              resources: [
                {
                  resource: 'deployments',
                  responseKind: { group: 'apps', version: 'v1', kind: 'Deployment' },
                  scope: 'Namespaced',
                  singularResource: 'deployment',
                  verbs,
                  subresources: [
                    {
                      subresource: 'scale',
                      responseKind: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
                      verbs: ['get'],
                    },
                  ],
                },
              ],
              freshness: 'Current',
            },
          ],
        },
      ],
    });
    expect(aggregatedDiscovery([group('')])).toMatchObject({ items: [{ metadata: {} }] });
  });
});

describe('versions', () => {
  test('are ordered as Kubernetes does', () => {
    const sorted = [
      'v10',
      'v2',
      'v1',
      'v11beta2',
      'v10beta3',
      'v3beta1',
      'v12alpha1',
      'v11alpha2',
      'foo1',
      'foo10',
    ];
    expect([...sorted].reverse().sort(compareVersions)).toEqual(sorted);
  });

  test('have a total order', () => {
    const version = fc.stringMatching(/^v?[0-9]{1,2}((alpha|beta)[0-9])?$/);
    fc.assert(
      fc.property(version, version, (a, b) => {
        expect(Math.sign(compareVersions(a, b)) + Math.sign(compareVersions(b, a))).toBe(0);
      }),
    );
  });
});
