import { afterAll, beforeAll, expect, test } from 'vitest';
import { InformerFactory } from '../../src/client/informers/shared-informer.ts';
import {
  type ContainerExit,
  type ContainerRuntime,
  noRuntime,
} from '../../src/controllers/kubelet/container-runtime.ts';
import { kubeletController } from '../../src/controllers/kubelet/controller.ts';
import { textAt } from '../../src/objects/json.ts';
import type { Pod, PodSpec } from '../../src/objects/types/core.generated.ts';
import { runnableOf } from '../../src/runtime/key-loop.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { controllerContext } from '../support/controller-context.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { call } from '../support/test-server.ts';

const core = '/api/v1/namespaces/default';
/** Milliseconds, and seconds. */
const hour = 3_600_000;
const week = 7 * 24 * 3600;

/** Programs that run until they are stopped, and volumes in memory. */
class MemoryRuntime {
  /** By `POD/VOLUME/PATH`. */
  readonly files = new Map<string, string>();
  /** Bytes that each volume of a Pod holds. */
  readonly usage = new Map<string, number>();
  /** Pods whose disk is full. */
  readonly full = new Set<string>();
  readonly #running = new Map<string, (exit: ContainerExit) => void>();

  readonly runtime: ContainerRuntime = {
    ...noRuntime,
    isReal: true,
    isStandIn: () => false,
    writeVolume: ({ metadata: { name: pod = '' } }, { name, files }) => {
      if (this.full.has(pod)) return Promise.reject(new Error('ENOSPC: no space left on device, write'));
      for (const { path, content } of files) this.files.set(`${pod}/${name}/${path}`, content.toString());
      return Promise.resolve();
    },
    usageOf: ({ metadata: { name = '' } }) =>
      Promise.resolve({
        volumes: new Map([['cache', this.usage.get(name) ?? 0]]),
        containers: new Map(),
      }),
    start: ({ pod, container }, ended) => {
      this.#running.set(`${pod.metadata.name ?? ''}/${container.name}`, ended);
      return Promise.resolve(undefined);
    },
    stop: (pod, name) => {
      this.#running.get(`${pod.metadata.name ?? ''}/${name}`)?.({ exitCode: 137 });
      return Promise.resolve();
    },
  };
}

const memory = new MemoryRuntime();
const clock = new FakeClock(Date.now());
const stop = new AbortController();
let server: TestServer;
let context: ReturnType<typeof controllerContext>;
let running: Promise<unknown> = Promise.resolve();

beforeAll(async () => {
  server = await startApiServer({ nodes: 1, controllers: ['*', '-kubelet'] });
  const made = controllerContext(clock, server.client);
  const { random, log, metrics } = made;
  const informers = new InformerFactory({ transport: server.client, clock, random, log, metrics });
  context = { ...made, informers };
  const kubelet = kubeletController({ runtime: memory.runtime, services: () => [] });
  const runnable = runnableOf(kubelet, context);
  informers.start(stop.signal);
  running = runnable.run(stop.signal);
});
afterAll(async () => {
  stop.abort();
  await running;
  await server.stop();
});

async function create(plural: string, body: object): Promise<void> {
  expect((await call(server.client, 'POST', `${core}/${plural}`, { body })).status).toBe(201);
}

function merge(path: string, body: object): Promise<unknown> {
  return call(server.client, 'PATCH', `${core}/${path}`, {
    body,
    contentType: 'application/merge-patch+json',
  });
}

async function createPod(name: string, spec: Partial<PodSpec>): Promise<void> {
  await create('pods', {
    metadata: { name, annotations: { mark: 'first' } },
    spec: { nodeName: 'node-1', containers: [{ name: 'main', image: 'i' }], ...spec },
  });
}

/** Lets the clock go on, a tenth of a second a look, until something is seen. */
async function seen<T>(look: () => Promise<T> | T, expected: T): Promise<void> {
  const looked = async (): Promise<T> => {
    await clock.advance(100);
    return await look();
  };
  await expect.poll(looked, { timeout: 60_000, interval: 20 }).toEqual(expected);
}

async function statusOf(name: string): Promise<Pod['status']> {
  return ((await call(server.client, 'GET', `${core}/pods/${name}`)).body as unknown as Pod).status;
}

/**
 * Starts a Pod with tokens, by the seconds of their time.
 *
 * @returns its tokens so many milliseconds after its start: another mark beside them says that they were written anew.
 */
async function holder(
  name: string,
  serviceAccountName: string,
  tokens: readonly number[],
): Promise<(time: number) => Promise<readonly string[]>> {
  const sources = tokens.map((expirationSeconds) => ({
    serviceAccountToken: { path: `${expirationSeconds}`, expirationSeconds },
  }));
  await create('serviceaccounts', { metadata: { name: serviceAccountName } });
  const mark = { path: 'mark', fieldRef: { fieldPath: "metadata.annotations['mark']" } };
  await createPod(name, {
    serviceAccountName,
    volumes: [{ name: 'tokens', projected: { sources: [...sources, { downwardAPI: { items: [mark] } }] } }],
  });
  await seen(async () => (await statusOf(name)).phase, 'Running');
  const start = clock.now();
  return async (time) => {
    clock.jump(start + time - clock.now());
    await merge(`pods/${name}`, { metadata: { annotations: { mark: `at ${time}` } } });
    await seen(() => memory.files.get(`${name}/tokens/mark`), `at ${time}`);
    return tokens.map((seconds) => memory.files.get(`${name}/tokens/${seconds}`) ?? '');
  };
}

const failures = (): readonly string[] => context.recorded.filter((event) => event.includes('FailedMount'));

test('tokens rotate at four fifths of their time, and after a day', async () => {
  const tokensAt = await holder('rotating', 'shop', [20 * 3600, week]);
  const [short, long] = await tokensAt(0.7 * 20 * hour);
  expect(short).toMatch(/^ey.*\..*\./);
  const later = await tokensAt(0.85 * 20 * hour);
  expect(later[0]).not.toBe(short);
  expect(later[1]).toBe(long);
  expect((await tokensAt(23 * hour))[1]).toBe(long);
  expect((await tokensAt(24.1 * hour))[1]).not.toBe(long);
  expect(failures()).toEqual([]);
});

test('a token stays to its end while no other can be had', async () => {
  const tokensAt = await holder('holding', 'gone', [week]);
  const [token] = await tokensAt(hour);
  await call(server.client, 'DELETE', `${core}/serviceaccounts/gone`);
  expect(await tokensAt(25 * hour)).toEqual([token]);
  expect(failures()).toEqual([]);
  clock.jump(7 * 24 * hour);
  await merge('pods/holding', { metadata: { annotations: { mark: 'too late' } } });
  await seen(
    () => failures().find((event) => event.includes('holding')),
    'Warning FailedMount holding: MountVolume.SetUp failed for volume "tokens" : failed to fetch token: serviceaccounts "gone" not found',
  );
});

test('a volume has the trust bundle of a name, and those of a signer', async () => {
  const bundles = '/apis/certificates.k8s.io/v1/clustertrustbundles';
  const add = async (name: string, spec: object, labels = {}): Promise<void> => {
    const body = { metadata: { name, labels }, spec: { trustBundle: server.ca, ...spec } };
    expect((await call(server.client, 'POST', bundles, { body })).status).toBe(201);
  };
  const signerName = 'example.com/signer';
  await add('own', {});
  await add('example.com:signer:a', { signerName }, { use: 'yes' });
  const bundle = (path: string, wanted: object): object => ({ clusterTrustBundle: { path, ...wanted } });
  const sources = [
    bundle('own.pem', { name: 'own' }),
    bundle('signer.pem', { signerName, labelSelector: { matchLabels: { use: 'yes' } } }),
    bundle('none.pem', { signerName, optional: true }),
  ];
  await createPod('trusting', { volumes: [{ name: 'trust', projected: { sources } }] });
  await seen(async () => (await statusOf('trusting')).phase, 'Running');
  expect(memory.files.get('trusting/trust/own.pem')).toBe(server.ca);
  expect(memory.files.get('trusting/trust/signer.pem')).toBe(server.ca);
  expect(memory.files.get('trusting/trust/none.pem')).toBe('');
});

test('files of Secrets and ConfigMaps follow within a minute', async () => {
  await create('secrets', { metadata: { name: 'keys' }, stringData: { key: 'old' } });
  await create('configmaps', { metadata: { name: 'settings' }, data: { color: 'red' } });
  await createPod('following', {
    volumes: [
      { name: 'keys', secret: { secretName: 'keys' } },
      { name: 'settings', configMap: { name: 'settings' } },
    ],
  });
  const files = (): unknown =>
    ['keys/key', 'settings/color'].map((path) => memory.files.get(`following/${path}`));
  await seen(async () => (await statusOf('following')).phase, 'Running');
  expect(files()).toEqual(['old', 'red']);
  await merge('secrets/keys', { stringData: { key: 'new' } });
  await merge('configmaps/settings', { data: { color: 'green' } });
  await clock.advance(60_000);
  await seen(files, ['new', 'green']);
});

test('a full disk keeps a Pod waiting, and a volume over its limit evicts it', async () => {
  const volumes = [{ name: 'cache', emptyDir: { sizeLimit: '1Mi' } }];
  memory.full.add('filling');
  await createPod('filling', { volumes });
  const failed = 'MountVolume.SetUp failed for volume "cache" : ENOSPC: no space left on device, write';
  await seen(() => context.recorded.includes(`Warning FailedMount filling: ${failed}`), true);
  await seen(
    async () => (await statusOf('filling')).containerStatuses?.[0]?.state?.waiting?.reason,
    'ContainerCreating',
  );
  memory.full.delete('filling');
  await seen(async () => (await statusOf('filling')).phase, 'Running');
  memory.usage.set('filling', 1024 * 1024 + 1);
  await clock.advance(10_000);
  const evicted = 'Usage of EmptyDir volume "cache" exceeds the limit "1Mi". ';
  await seen(
    async () => {
      const { phase, reason, message } = await statusOf('filling');
      return { phase, reason, message };
    },
    { phase: 'Failed', reason: 'Evicted', message: evicted },
  );
  expect(context.recorded).toContain(`Warning Evicted filling: ${evicted}`);
});

test('a Pod whose port another one has is rejected, and a StatefulSet makes it anew until the port is free', async () => {
  const ports = [{ containerPort: 80, hostPort: 8080 }];
  const containers = [{ name: 'main', image: 'i', ports }];
  await createPod('first', { containers });
  await seen(async () => (await statusOf('first')).phase, 'Running');
  await createPod('second', { containers });
  const why = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";
  await seen(
    async () => {
      const { phase, reason, message } = await statusOf('second');
      return { phase, reason, message };
    },
    { phase: 'Failed', reason: 'NodePorts', message: `Pod was rejected: ${why}` },
  );
  expect(context.recorded).toContain(`Warning NodePorts second: ${why}`);
  const labels = { app: 'set' };
  const set = `/apis/apps/v1/namespaces/default/statefulsets`;
  const template = { metadata: { labels }, spec: { nodeName: 'node-1', containers } };
  const spec = { serviceName: 'set', selector: { matchLabels: labels }, template };
  await call(server.client, 'POST', set, { body: { metadata: { name: 'set' }, spec } });
  const uids = new Set<string>();
  await seen(async () => {
    const { body } = await call(server.client, 'GET', `${core}/pods/set-0`);
    const uid = textAt(body, 'metadata', 'uid');
    if (uid !== '') uids.add(uid);
    return uids.size > 1;
  }, true);
  await call(server.client, 'DELETE', `${core}/pods/first?gracePeriodSeconds=0`);
  await seen(async () => (await statusOf('set-0')).phase, 'Running');
});
