import { createHash } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { listAt, recordAt, textAt } from '../../../src/objects/json.ts';
import type { TestServer } from '../../../src/testing/index.ts';
import { eventually } from '../../support/api-operations.ts';
import { createDefinition, deleteDefinition } from '../../support/e2e-definitions.ts';
import { call } from '../../support/test-server.ts';
import type { TypedClient } from '../../support/typed-client.ts';
import type { E2eCluster } from '../../support/e2e-cluster.ts';

/**
 * The calls of e2e tests of discovery (`apimachinery/discovery.go`, `aggregated_discovery.go`, `server_version.go`,
 * `openapiv3.go`); titles are theirs.
 */
export function discovery(shared: () => E2eCluster): void {
  let server: TestServer;
  let client: TypedClient;
  beforeAll(() => {
    ({ server, client } = shared());
  });

  /** What the tests look for: group, version, resource. */
  const expected = [
    ['', 'v1', 'namespaces'],
    ['admissionregistration.k8s.io', 'v1', 'validatingwebhookconfigurations'],
    ['apiextensions.k8s.io', 'v1', 'customresourcedefinitions'],
    ['apiregistration.k8s.io', 'v1', 'apiservices'],
    ['apps', 'v1', 'deployments'],
    ['authentication.k8s.io', 'v1', 'tokenreviews'],
    ['authorization.k8s.io', 'v1', 'selfsubjectaccessreviews'],
    ['autoscaling', 'v1', 'horizontalpodautoscalers'],
    ['autoscaling', 'v2', 'horizontalpodautoscalers'],
    ['batch', 'v1', 'jobs'],
    ['certificates.k8s.io', 'v1', 'certificatesigningrequests'],
    ['coordination.k8s.io', 'v1', 'leases'],
    ['discovery.k8s.io', 'v1', 'endpointslices'],
    ['events.k8s.io', 'v1', 'events'],
    ['networking.k8s.io', 'v1', 'ingresses'],
    ['node.k8s.io', 'v1', 'runtimeclasses'],
    ['policy', 'v1', 'poddisruptionbudgets'],
    ['scheduling.k8s.io', 'v1', 'priorityclasses'],
    ['storage.k8s.io', 'v1', 'csinodes'],
  ] as const;

  const versionsOf = (group: unknown): string[] =>
    listAt(group, 'versions').map((version) => textAt(version, 'groupVersion'));
  const namesOf = (body: JsonRecord): string[] => listAt(body, 'resources').map((row) => textAt(row, 'name'));

  test('[sig-api-machinery] Discovery should validate PreferredVersion for each APIGroup', async () => {
    const { body } = await client.call('GET', '/apis/');
    const groups = listAt(body, 'groups');
    expect(groups).not.toEqual([]);
    for (const group of groups) {
      const one = await client.call('GET', `/apis/${textAt(group, 'name')}/`);
      expect(versionsOf(one.body)).toContain(textAt(one.body, 'preferredVersion', 'groupVersion'));
    }
  });

  test('[sig-api-machinery] Discovery should locate the groupVersion and a resource within each APIGroup', async () => {
    for (const [group, version, resource] of expected) {
      const path = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
      const { body } = await client.call('GET', path);
      expect(body['groupVersion']).toBe(group === '' ? version : `${group}/${version}`);
      expect(namesOf(body)).toContain(resource);
    }
  });

  test('[sig-api-machinery] Discovery should accurately determine present and missing resources', async () => {
    // `clientdiscovery.IsResourceEnabled`: a group version that there is not is 404
    expect(namesOf((await client.call('GET', '/api/v1')).body)).toContain('namespaces');
    const apps = await client.call('GET', '/apis/apps/v1');
    expect(namesOf(apps.body)).toContain('deployments');
    expect(namesOf(apps.body)).not.toContain('please-dont-ever-create-this');
    expect((await client.call('GET', '/apis/not-these-apps/v1')).status).toBe(404);
  });

  test('[sig-api-machinery] Discovery Custom resource should have storage version hash', async () => {
    const group = 'discovery-crd-test.example.com';
    const { definition } = await createDefinition(client, { name: 'e2e-test-hash', group, version: 'v1' });
    const { body } = await client.call('GET', `/apis/${group}/v1`);
    const [row] = listAt(body, 'resources');
    const hash = createHash('sha256').update(`${group}/v1/e2e-test-hash`).digest().subarray(0, 8);
    expect(textAt(row, 'storageVersionHash')).toBe(hash.toString('base64'));
    await deleteDefinition(client, definition);
  });

  const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
  /** What client-go sends (`discovery_client.go`): v2, then v2beta1, then the old form. */
  const anyDiscovery = `${aggregated},${aggregated.replace('v=v2', 'v=v2beta1')},application/json`;

  /** The resources in an aggregated document, as `group/version/resource`. */
  async function aggregatedResources(path: string, accept = aggregated): Promise<Set<string>> {
    const { body } = await call(server.client, 'GET', path, { headers: { accept } });
    expect([body['kind'], body['apiVersion']]).toEqual(['APIGroupDiscoveryList', 'apidiscovery.k8s.io/v2']);
    return new Set(
      listAt(body, 'items').flatMap((group) =>
        listAt(group, 'versions').flatMap((version) =>
          listAt(version, 'resources').map((resource) =>
            [
              textAt(group, 'metadata', 'name'),
              textAt(version, 'version'),
              textAt(resource, 'resource'),
            ].join('/'),
          ),
        ),
      ),
    );
  }

  test('[sig-api-machinery] AggregatedDiscovery should support raw aggregated discovery endpoint Accept headers', async () => {
    const found = new Set([...(await aggregatedResources('/apis')), ...(await aggregatedResources('/api'))]);
    expect(expected.map((row) => row.join('/')).filter((row) => !found.has(row))).toEqual([]);
  });

  test('[sig-api-machinery] AggregatedDiscovery should support aggregated discovery interface', async () => {
    const found = new Set([
      ...(await aggregatedResources('/apis', anyDiscovery)),
      ...(await aggregatedResources('/api', anyDiscovery)),
    ]);
    expect(expected.map((row) => row.join('/')).filter((row) => !found.has(row))).toEqual([]);
  });

  test.each([
    ['raw aggregated discovery request', aggregated],
    ['aggregated discovery interface', anyDiscovery],
  ])('[sig-api-machinery] AggregatedDiscovery should support %s for CRDs', async (way, accept) => {
    const group = `group-${way.length}.example.com`;
    const named = { name: 'testcrd', group, version: 'v1', scope: 'Namespaced' } as const;
    const { definition } = await createDefinition(client, named);
    const resource = `${group}/v1/testcrds`;
    while (!(await aggregatedResources('/apis', accept)).has(resource));
    await deleteDefinition(client, definition);
    while ((await aggregatedResources('/apis', accept)).has(resource));
  });

  test('[sig-api-machinery] server version should find the server version', async () => {
    const { body } = await call(server.client, 'GET', '/version');
    const [major, minor] = [textAt(body, 'major'), textAt(body, 'minor')];
    expect(/[1-9]/.exec(major)?.[0]).toBe(major);
    expect(/[0-9]+/.exec(minor)?.[0]).toBe(minor.replace(/[^0-9]+/g, ''));
  });

  async function openApiPaths(): Promise<JsonRecord> {
    return recordAt((await call(server.client, 'GET', '/openapi/v3')).body['paths']);
  }

  test('[sig-api-machinery] OpenAPIV3 should round trip OpenAPI V3 for all built-in group versions', async () => {
    const paths = await openApiPaths();
    for (const [group, version] of expected) {
      expect(Object.keys(paths)).toContain(group === '' ? `api/${version}` : `apis/${group}/${version}`);
    }
    for (const [path, entry] of Object.entries(paths)) {
      if (!/^apis?\/.*v\d/.test(path)) continue;
      const url = textAt(entry, 'serverRelativeURL');
      const accept = 'application/json';
      const { status, body } = await call(server.client, 'GET', url, { headers: { accept } });
      expect([path, status, textAt(body, 'openapi')]).toEqual([path, 200, '3.0.0']);
      expect(JSON.parse(JSON.stringify(body))).toEqual(body);
    }
  });

  test('[sig-api-machinery] OpenAPIV3 should publish OpenAPI V3 for CustomResourceDefinition', async () => {
    const group = 'openapi.example.com';
    const { definition } = await createDefinition(client, { name: 'testcrd', group, scope: 'Namespaced' });
    const path = `apis/${group}/v1beta1`;
    while (!Object.hasOwn(await openApiPaths(), path));
    const url = textAt((await openApiPaths())[path], 'serverRelativeURL');
    const { body } = await call(server.client, 'GET', url);
    expect(Object.keys(recordAt(body, 'paths'))).toContain(`/apis/${group}/v1beta1/testcrds`);
    await deleteDefinition(client, definition);
    await eventually(
      async () => call(server.client, 'GET', '/openapi/v3'),
      (answer) => !Object.hasOwn(recordAt(answer.body, 'paths'), path),
    );
  });
}
