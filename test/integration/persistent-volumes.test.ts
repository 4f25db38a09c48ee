import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { Kubectl } from '../support/kubectl.ts';
import { kubectlIn, type NamespacedKubectl } from '../support/namespaced-kubectl.ts';
import { itemsOf } from '../support/with-controllers.ts';

let server: TestServer;
let kubectl: Kubectl;

beforeAll(async () => {
  server = await startApiServer({ nodes: 2 });
  kubectl = new Kubectl(server.kubeconfig);
});
afterAll(async () => {
  kubectl.dispose();
  await server.stop();
});

let namespaces = 0;
const inNamespace = (): Promise<NamespacedKubectl> =>
  kubectlIn(kubectl, server.client, `volumes-${++namespaces}`);

const claim = (name: string, spec = '', size = '1Gi'): string => `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: ${name}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: ${size}}}${spec}}
`;
const pod = (name: string, claimName = 'data', more = ''): string => `
apiVersion: v1
kind: Pod
metadata: {name: ${name}, annotations: {servicenet.dev/stop-after: 2s}}
spec:
  containers: [{name: main, image: i, volumeMounts: [{name: v, mountPath: /data}]}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: ${claimName}}}]
  ${more}
`;
const volume = (name: string, spec: string, metadata = ''): string => `
apiVersion: v1
kind: PersistentVolume
metadata: {name: ${name}${metadata}}
spec: {accessModes: [ReadWriteOnce], hostPath: {path: /mnt}, ${spec}}
`;
const manual = 'storageClassName: manual';

type Run = NamespacedKubectl['run'];

function eventually(ask: () => Promise<unknown>): ReturnType<typeof expect.poll> {
  return expect.poll(ask, { timeout: 30_000 });
}
const phaseOf =
  (run: Run, what: string): (() => Promise<string>) =>
  () =>
    run(`get ${what} --ignore-not-found -o jsonpath={.status.phase}`);
const eventsOf =
  ({ json }: NamespacedKubectl, name: string): (() => Promise<string[]>) =>
  async () =>
    itemsOf(await json(`get events --field-selector involvedObject.name=${name}`)).map(
      (event) => `${textAt(event, 'reason')}: ${textAt(event, 'message')}`,
    );

describe('a claim of the default class', () => {
  test('is bound at its first use, shared, protected while it is used, and gone with its volume', async () => {
    const n = await inNamespace();
    const { run } = n;
    await run('apply -f -', claim('data'));
    expect(await run('get pvc data -o jsonpath={.spec.storageClassName}')).toBe('standard');
    await eventually(eventsOf(n, 'data')).toContain(
      'WaitForFirstConsumer: waiting for first consumer to be created before binding',
    );
    expect(await phaseOf(run, 'pvc data')()).toBe('Pending');

    await run('apply -f -', [pod('one'), pod('two')].join('---'));
    await run('wait pod one two --for=condition=Ready --timeout=30s');
    const { metadata, spec, status } = await n.json('get pvc data');
    const name = `pvc-${textAt(metadata, 'uid')}`;
    expect({ spec, status }).toMatchObject({
      spec: { volumeName: name },
      status: { phase: 'Bound', capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'] },
    });
    expect(await n.json(`get pv ${name}`)).toMatchObject({
      metadata: { annotations: { 'pv.kubernetes.io/provisioned-by': 'folders.servicenet.dev' } },
      spec: {
        ...{ storageClassName: 'standard', persistentVolumeReclaimPolicy: 'Delete' },
        claimRef: { namespace: n.namespace, name: 'data', uid: textAt(metadata, 'uid') },
      },
      status: { phase: 'Bound' },
    });
    await eventually(eventsOf(n, 'data')).toContain(
      `ProvisioningSucceeded: Successfully provisioned volume ${name}`,
    );

    const ask = '{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}';
    await run(`patch pvc data -p ${ask}`);
    await eventually(() => run('get pvc data -o jsonpath={.status.capacity.storage}')).toBe('2Gi');
    expect(await run(`get pv ${name} -o jsonpath={.spec.capacity.storage}`)).toBe('2Gi');

    await run('delete pvc data --wait=false');
    await run('delete pod one');
    expect(await run('get pvc data')).toMatch(/^data\s+Terminating\s/m);
    await run('delete pod two');
    await eventually(() => run(`get pvc,pv data ${name} --ignore-not-found`).catch(String)).toBe('');
  });

  test('keeps its volume by the policy Retain, for another claim once its user says so', async () => {
    const { run } = await inNamespace();
    await run('apply -f -', claim('data') + '---' + pod('one'));
    await run('wait pod one --for=condition=Ready --timeout=30s');
    const name = await run('get pvc data -o jsonpath={.spec.volumeName}');
    await run(`patch pv ${name} -p {"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`);
    await run('delete pod one');
    await run('delete pvc data');
    await eventually(phaseOf(run, `pv ${name}`)).toBe('Released');
    await run(`patch pv ${name} -p {"spec":{"claimRef":null}}`);
    await eventually(phaseOf(run, `pv ${name}`)).toBe('Available');
    await run('apply -f -', claim('again', `, volumeName: ${name}`));
    await eventually(phaseOf(run, 'pvc again')).toBe('Bound');
    await run(`patch pv ${name} -p {"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`);
    await run('delete pvc again');
    await eventually(phaseOf(run, `pv ${name}`)).toBe('');
  });

  test('gets the class that becomes the default later', async () => {
    const { run } = await inNamespace();
    const annotation = 'storageclass.kubernetes.io/is-default-class';
    await run(`annotate storageclass standard ${annotation}=false --overwrite`);
    await run('apply -f -', claim('data') + '---' + pod('one'));
    const condition = 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}';
    await eventually(() => run(`get pod one -o ${condition}`)).toBe(
      '0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.',
    );
    await run(`annotate storageclass standard ${annotation}=true --overwrite`);
    await run('wait pod one --for=condition=Ready --timeout=30s');
    expect(await run('get pvc data -o jsonpath={.spec.storageClassName}')).toBe('standard');
  });
});

describe('a volume that is there', () => {
  test('binds to the claim that it fits: by size, class, labels, and who it is reserved for', async () => {
    const n = await inNamespace();
    const { run } = n;
    const reserved = `claimRef: {namespace: ${n.namespace}, name: chosen}`;
    const volumes = [
      volume('small', `capacity: {storage: 1Gi}, ${manual}`),
      volume('large', `capacity: {storage: 9Gi}, ${manual}`),
      volume('fast', `capacity: {storage: 9Gi}, ${manual}`, ', labels: {disk: fast}'),
      volume('own', `capacity: {storage: 5Gi}, ${manual}, ${reserved}`),
    ];
    await run('apply -f -', volumes.join('---'));
    for (const name of ['small', 'large', 'fast', 'own']) {
      await eventually(phaseOf(run, `pv ${name}`)).toBe('Available');
    }
    const claims = [
      claim('by-label', `, ${manual}, selector: {matchLabels: {disk: fast}}`),
      claim('chosen', `, ${manual}`, '2Gi'),
      claim('unlucky', `, ${manual}`, '20Gi'),
      claim('mismatched', `, ${manual}, volumeName: small`, '2Gi'),
    ];
    await run('apply -f -', claims.join('---'));
    await run('wait pvc by-label chosen --for=jsonpath={.status.phase}=Bound --timeout=30s');
    await run('apply -f -', claim('by-size', `, ${manual}`, '2Gi'));
    await eventually(phaseOf(run, 'pvc by-size')).toBe('Bound');
    const pairs = itemsOf(await n.json('get pvc')).map(
      (each) => `${textAt(each, 'metadata', 'name')} ${textAt(each, 'spec', 'volumeName')}`,
    );
    expect(pairs.sort()).toEqual([
      ...['by-label fast', 'by-size large', 'chosen own', 'mismatched small', 'unlucky '],
    ]);
    await eventually(eventsOf(n, 'mismatched')).toEqual([
      'VolumeMismatch: Cannot bind to requested volume "small": requested PV is too small',
    ]);
    await eventually(eventsOf(n, 'unlucky')).toEqual([
      'ProvisioningFailed: storageclass.storage.k8s.io "manual" not found',
    ]);

    const more = '{"spec":{"resources":{"requests":{"storage":"3Gi"}}}}';
    await expect(run(`patch pvc by-size -p ${more}`)).rejects.toThrow('must support resize');

    // One that nothing here can empty or delete fails; one that is lost is said.
    await run(`patch pv large -p {"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`);
    await run('delete pvc by-size');
    await eventually(phaseOf(run, 'pv large')).toBe('Failed');
    await run('delete pv own --wait=false');
    expect(await run('get pv own')).toMatch(/^own\s.*\sTerminating\s/m);
    await run(`patch pv own --type=json -p '[{"op":"remove","path":"/metadata/finalizers"}]'`);
    await eventually(phaseOf(run, 'pvc chosen')).toBe('Lost');
    await run('delete pvc --all');
    await run('delete pv small large fast');
  });

  test('of one node brings its Pod there', async () => {
    const n = await inNamespace();
    const { run, json } = n;
    const storageClass = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
`;
    const at = (node: string): string =>
      `nodeAffinity: {required: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [${node}]}]}]}}`;
    await run('apply -f -', storageClass + '---' + claim('data', ', storageClassName: local'));
    await run('apply -f -', pod('one'));
    const condition = 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}';
    await eventually(() => run(`get pod one -o ${condition}`)).toBe(
      "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
    );
    await eventually(eventsOf(n, 'data')).toContain(
      'WaitForPodScheduled: waiting for pod one to be scheduled',
    );
    const spec = `capacity: {storage: 1Gi}, storageClassName: local, ${at('node-2')}`;
    await run('apply -f -', volume('local', spec));
    await run('wait pod one --for=condition=Ready --timeout=30s');
    expect(await json('get pod one')).toMatchObject({ spec: { nodeName: 'node-2' } });
    await run('apply -f -', pod('other', 'data', 'nodeSelector: {kubernetes.io/hostname: node-1}'));
    await eventually(() => run(`get pod other -o ${condition}`)).toMatch(
      /1 node\(s\) didn't match PersistentVolume's node affinity/,
    );
    await run('delete pod --all --now');
    await run('delete pvc data');
    await run('delete pv local');
    await run('delete storageclass local');
  });
});

test('claims of a StatefulSet go as its retention policy says, and a scaled set gets new ones', async () => {
  const n = await inNamespace();
  const { run } = n;
  await run(
    'apply -f -',
    `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  persistentVolumeClaimRetentionPolicy: {whenScaled: Delete, whenDeleted: Delete}
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}, annotations: {servicenet.dev/stop-after: 50ms}}
    spec: {containers: [{name: db, image: db}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`,
  );
  await run('rollout status statefulset/db --timeout=30s');
  const uids = async (): Promise<Record<string, string>> =>
    Object.fromEntries(
      listAt(await n.json('get pvc'), 'items').map((each) => [
        ...([textAt(each, 'metadata', 'name'), textAt(each, 'metadata', 'uid')] as const),
      ]),
    );
  const before = await uids();
  expect(Object.keys(before)).toEqual(['data-db-0', 'data-db-1']);
  await run('scale statefulset db --replicas=1');
  await eventually(uids).toEqual({ 'data-db-0': before['data-db-0'] });
  await run('scale statefulset db --replicas=2');
  await run('rollout status statefulset/db --timeout=30s');
  const after = await uids();
  expect(after['data-db-0']).toBe(before['data-db-0']);
  expect(after['data-db-1']).not.toBe(before['data-db-1']);
  await run('delete statefulset db');
  await eventually(uids).toEqual({});
});

test('many claims at once take no work of each other', { timeout: 120_000 }, async () => {
  const { run, json } = await inNamespace();
  await run(
    'apply -f -',
    `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: many}
spec:
  serviceName: many
  replicas: 120
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: many}}
  template:
    metadata: {labels: {app: many}}
    spec: {containers: [{name: db, image: db}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`,
  );
  // Where each change asks for all of them again, this takes some minutes.
  await run('rollout status statefulset/many --timeout=90s');
  const phases = itemsOf(await json('get pvc')).map((each) => textAt(each, 'status', 'phase'));
  expect(phases).toEqual(Array.from({ length: 120 }, () => 'Bound'));
});
