import { randomUUID } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { listAt, recordAt, textAt } from '../../../src/objects/json.ts';
import { apiOperations } from '../../support/api-operations.ts';
import type { E2eCluster } from '../../support/e2e-cluster.ts';
import type { TypedClient } from '../../support/typed-client.ts';

/** The calls of e2e tests of storage.k8s.io; titles are theirs. */
export function storage(shared: () => E2eCluster): void {
  let cluster: E2eCluster;
  let client: TypedClient;
  let namespace = '';
  beforeAll(async () => {
    cluster = shared();
    client = cluster.client;
    namespace = await cluster.namespace('storage');
  });

  const storage = '/apis/storage.k8s.io/v1';

  interface Lifecycle {
    readonly path: string;
    readonly apiVersion: string;
    readonly kind: string;
    /** What it has besides metadata. */
    readonly content: JsonRecord;
    readonly patch: 'merge' | 'strategic-merge';
  }

  /** Create, get, patch, list, delete; then another: update, delete by label. */
  async function runsThrough({ path, apiVersion, kind, content, patch }: Lifecycle): Promise<void> {
    const make = async (): Promise<JsonRecord> => {
      const name = `e2e-${randomUUID().slice(0, 8)}`;
      const made = await client.call('POST', path, {
        body: { apiVersion, kind, metadata: { name }, ...content },
      });
      expect([made.status, textAt(made.body, 'metadata', 'name')]).toEqual([201, name]);
      return made.body;
    };
    const listed = async (labelSelector: string): Promise<readonly unknown[]> =>
      listAt((await client.call('GET', path, { query: { labelSelector } })).body, 'items');

    const first = await make();
    const name = textAt(first, 'metadata', 'name');
    const got = await client.call('GET', `${path}/${name}`);
    expect(got.body['metadata']).toEqual(first['metadata']);
    const patched = await client.call('PATCH', `${path}/${name}`, {
      body: { metadata: { labels: { [name]: 'patched' } } },
      patch,
    });
    expect(textAt(patched.body, 'metadata', 'labels', name)).toBe('patched');
    const revision = (object: unknown) => Number(textAt(object, 'metadata', 'resourceVersion'));
    expect(revision(patched.body)).toBeGreaterThan(revision(first));
    expect(await listed(`${name}=patched`)).toHaveLength(1);
    expect((await client.call('DELETE', `${path}/${name}`)).status).toBe(200);
    expect(await listed(`${name}=patched`)).toEqual([]);

    for (let each = 0; each < 2; each++) {
      const second = await make();
      const metadata = { ...recordAt(second, 'metadata'), labels: { 'e2e-kind': kind } };
      const updated = await client.call('PUT', `${path}/${textAt(second, 'metadata', 'name')}`, {
        body: { ...second, metadata },
      });
      expect([updated.status, textAt(updated.body, 'metadata', 'labels', 'e2e-kind')]).toEqual([200, kind]);
    }
    const query = { labelSelector: `e2e-kind=${kind}` };
    expect(await listed(query.labelSelector)).toHaveLength(2);
    expect((await client.call('DELETE', path, { query })).status).toBe(200);
    expect(await listed(query.labelSelector)).toEqual([]);
  }

  const storageV1 = 'storage.k8s.io/v1';
  const attachment = {
    spec: {
      attacher: 'e2e-test.storage.k8s.io',
      nodeName: 'node-1',
      source: { persistentVolumeName: 'pv-1' },
    },
    status: { attached: false },
  };

  test('[sig-storage] StorageClasses CSI Conformance should run through the lifecycle of a StorageClass', async () => {
    await runsThrough({
      ...{ path: `${storage}/storageclasses`, apiVersion: storageV1, kind: 'StorageClass' },
      content: { provisioner: 'e2e-fake-provisioner' },
      patch: 'strategic-merge',
    });
  });

  test('[sig-storage] VolumeAttachment Conformance should run through the lifecycle of a VolumeAttachment', async () => {
    await runsThrough({
      ...{ path: `${storage}/volumeattachments`, apiVersion: storageV1, kind: 'VolumeAttachment' },
      content: attachment,
      patch: 'merge',
    });
  });

  test('[sig-storage] VolumeAttachment Conformance should apply changes to a volumeattachment status', async () => {
    const path = `${storage}/volumeattachments`;
    const made = await client.call('POST', path, {
      body: {
        apiVersion: storageV1,
        kind: 'VolumeAttachment',
        metadata: { name: 'va-status' },
        ...attachment,
      },
    });
    expect(made.status).toBe(201);
    const read = await client.call('GET', `${path}/va-status/status`);
    expect(recordAt(read.body, 'status')['attached']).not.toBe(true);
    const patched = await client.call('PATCH', `${path}/va-status/status`, {
      body: { status: { attached: true } },
      patch: 'merge',
    });
    expect(recordAt(patched.body, 'status')['attached']).toBe(true);
    const updated = await client.call('PUT', `${path}/va-status/status`, {
      body: { ...patched.body, status: { attached: false } },
    });
    expect([updated.status, recordAt(updated.body, 'status')['attached'] ?? false]).toEqual([200, false]);
    expect((await client.call('DELETE', `${path}/va-status`)).status).toBe(200);
  });

  test('[sig-storage] CSINodes CSI Conformance should run through the lifecycle of a csinode', async () => {
    await runsThrough({
      ...{ path: `${storage}/csinodes`, apiVersion: storageV1, kind: 'CSINode' },
      content: { spec: { drivers: [] } },
      patch: 'strategic-merge',
    });
  });

  test('[sig-storage] VolumeAttributesClass should run through the lifecycle of a VolumeAttributesClass', async () => {
    await runsThrough({
      ...{ path: `${storage}/volumeattributesclasses`, apiVersion: storageV1, kind: 'VolumeAttributesClass' },
      content: { driverName: 'e2e-fake-csi-driver', parameters: { foo: 'bar' } },
      patch: 'strategic-merge',
    });
  });

  test('[sig-storage] CSIInlineVolumes should run through the lifecycle of a CSIDriver', async () => {
    const path = `${storage}/csidrivers`;
    const make = async (name: string, modes: readonly string[]) =>
      client.call('POST', path, {
        body: {
          ...{ apiVersion: storageV1, kind: 'CSIDriver' },
          metadata: { name, labels: { 'e2e-test': 'drivers' } },
          spec: { volumeLifecycleModes: [...modes], fsGroupPolicy: 'ReadWriteOnceWithFSType' },
        },
      });
    const [one, two] = ['inline-driver-1', 'inline-driver-2'] as const;
    expect((await make(one, ['Ephemeral'])).status).toBe(201);
    const second = await make(two, ['Persistent', 'Ephemeral']);
    expect((await make(one, ['Ephemeral'])).body['reason']).toBe('AlreadyExists');
    const patched = await client.call('PATCH', `${path}/${two}`, {
      body: { metadata: { labels: { [two]: 'patched' } } },
      patch: 'strategic-merge',
    });
    expect(textAt(patched.body, 'metadata', 'uid')).toBe(textAt(second.body, 'metadata', 'uid'));
    const metadata = {
      ...recordAt(patched.body, 'metadata'),
      labels: { 'e2e-test': 'drivers', [two]: 'updated' },
    };
    expect((await client.call('PUT', `${path}/${two}`, { body: { ...patched.body, metadata } })).status).toBe(
      200,
    );
    const all = { labelSelector: 'e2e-test=drivers' };
    expect(listAt((await client.call('GET', path, { query: all })).body, 'items')).toHaveLength(2);
    expect((await client.call('DELETE', `${path}/${one}`)).status).toBe(200);
    expect((await client.call('GET', `${path}/${one}`)).status).toBe(404);
    await client.call('DELETE', path, { query: { labelSelector: `${two}=updated` } });
    expect((await client.call('GET', `${path}/${two}`)).status).toBe(404);
  });

  test('[sig-storage] CSIInlineVolumes should support CSIVolumeSource in Pod API', async () => {
    const path = `/api/v1/namespaces/${namespace}/pods`;
    const driver = 'e2e.example.com';
    const pod = {
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'pod-csi-inline-volumes' } },
      spec: {
        volumes: [
          { name: 'csi-inline-vol1', csi: { driver } },
          { name: 'csi-inline-vol2', csi: { driver, fsType: 'ext4', readOnly: true } },
        ],
        containers: [
          {
            ...{ name: 'pod-csi-inline-volumes', image: 'busybox', command: ['sh', '-c', 'ls /mnt/*'] },
            volumeMounts: [
              { name: 'csi-inline-vol1', mountPath: '/mnt/vol1' },
              { name: 'csi-inline-vol2', mountPath: '/mnt/vol2' },
            ],
          },
        ],
      },
    };
    const made = await client.call('POST', path, { body: pod });
    expect([made.status, listAt(made.body, 'spec', 'volumes')[1]]).toEqual([201, pod.spec.volumes[1]]);
    expect((await client.call('POST', path, { body: pod })).body['reason']).toBe('AlreadyExists');
    expect(listAt((await client.call('GET', path)).body, 'items')).toHaveLength(1);
    const patched = await client.call('PATCH', `${path}/${pod.metadata.name}`, {
      body: { metadata: { annotations: { patched: 'true' } } },
      patch: 'merge',
    });
    expect(textAt(patched.body, 'metadata', 'annotations', 'patched')).toBe('true');
    await client.call('DELETE', `${path}/${pod.metadata.name}`);
    const left = await client.call('GET', `${path}/${pod.metadata.name}`);
    const isGoing = textAt(left.body, 'metadata', 'deletionTimestamp') !== '';
    expect(left.status === 404 || isGoing).toBe(true);
  });

  test('[sig-storage] CSIStorageCapacity should support CSIStorageCapacities API operations', async () => {
    const capacity = { nodeTopology: {}, storageClassName: 'e2e', capacity: '1Gi', maximumVolumeSize: '1Gi' };
    const objects = ['first', 'second', 'third'].map((name) => ({ metadata: { name }, ...capacity }));
    await apiOperations(cluster, { kind: 'csiStorageCapacities', namespace, objects });
  });
}
