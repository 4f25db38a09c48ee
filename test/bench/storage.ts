/**
 * What the store costs, in memory and on disk: commits at concurrency 1, 16 and 64, reads and lists, delivery of
 * events to watchers, and a restart with many objects. `node test/bench/storage.ts [directory]`: the directory is
 * where the disk part writes, for a disk that is not below the system's temporary directory.
 * Prints a table and writes bench-results/storage.json. Budgets (DESIGN.md): at most 250 µs for a create over HTTP, of which the store
 * may take 10; at least 200,000 deliveries a second; ready after 500 ms.
 */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { type DiskStorageOptions, openDiskStorage } from '../../src/apiserver/storage/disk/disk-storage.ts';
import { createMemoryStorage } from '../../src/apiserver/storage/multi-version.ts';
import { objectKey, type Storage } from '../../src/apiserver/storage/storage.ts';
import { isKubeObject, type KubeObject } from '../../src/objects/meta.ts';
import { report, type Row } from './report.ts';

const restartObjects = 100_000;
const listSize = 1000;
/** The argument with which the bench calls itself. */
const openFlag = '--open';
const servicesPrefix = 'core/services/';

const template = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: {
    name: 'NAME',
    namespace: 'default',
    uid: '4f6ec2ff-53f1-4b0e-9b9e-000000000000',
    resourceVersion: '',
    creationTimestamp: '2026-01-01T00:00:00Z',
    labels: { app: 'shop', tier: 'web' },
    managedFields: [
      {
        manager: 'bench',
        operation: 'Update',
        apiVersion: 'v1',
        time: '2026-01-01T00:00:00Z',
        fieldsType: 'FieldsV1',
        fieldsV1: {
          'f:metadata': { 'f:labels': { '.': {}, 'f:app': {}, 'f:tier': {} } },
          'f:spec': { 'f:ports': { '.': {} }, 'f:selector': {}, 'f:sessionAffinity': {}, 'f:type': {} },
        },
      },
    ],
  },
  spec: {
    clusterIP: '10.96.0.1',
    clusterIPs: ['10.96.0.1'],
    internalTrafficPolicy: 'Cluster',
    ipFamilies: ['IPv4'],
    ipFamilyPolicy: 'SingleStack',
    ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 8080 }],
    selector: { app: 'shop' },
    sessionAffinity: 'None',
    type: 'ClusterIP',
  },
  status: { loadBalancer: {} },
});

/** What a request's body is decoded to. */
function service(name: string): KubeObject {
  const object: unknown = JSON.parse(template);
  if (!isKubeObject(object)) throw new TypeError('the template is no object');
  object.metadata.name = name;
  return object;
}

const options: DiskStorageOptions = {
  encode: (object) => JSON.stringify(object),
  retain: { revisions: 100_000, milliseconds: 300_000, bytes: 64 * 1024 * 1024 },
  clock: Date.now,
  onListenerError: (error) => {
    throw error;
  },
  log: { warn: (details, message) => console.warn(message, details) },
};

const rows: Row[] = [];
function record(name: string, value: number, unit: string, budget?: string): void {
  rows.push({ name, value, unit, ...(budget === undefined ? {} : { budget }) });
}

const since = (start: number) => performance.now() - start;

/** Creates `count` objects, so many at a time; decoding them beforehand is not counted. */
async function commits(store: string, storage: Storage, concurrency: number, count: number): Promise<void> {
  const objects = Array.from({ length: count }, (_, i) => service(`s${concurrency}-${i}`));
  const latencies: number[] = [];
  let next = 0;
  const start = performance.now();
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for (let object = objects[next++]; object !== undefined; object = objects[next++]) {
        const begun = performance.now();
        const key = objectKey('', 'services', 'default', object.metadata.name ?? '');
        await storage.commit([{ key, expect: 'absent', object }]);
        latencies.push(since(begun));
      }
    }),
  );
  const elapsed = since(start);
  latencies.sort((a, b) => a - b);
  record(`${store}: commits, ${concurrency} at a time`, (count / elapsed) * 1000, '/s');
  record(`${store}: commit p99, ${concurrency} at a time`, latencies[Math.floor(count * 0.99)] ?? 0, 'ms');
}

async function memory(): Promise<void> {
  const storage = createMemoryStorage(options);
  await commits('memory', storage, 1, 20_000); // warm-up
  rows.length = 0;
  await commits('memory', createMemoryStorage(options), 1, 50_000);
  for (const concurrency of [16, 64]) await commits('memory', storage, concurrency, 30_000);

  const repeat = 300;
  const keys = storage.list(servicesPrefix, { limit: 10_000 }).items.map((item) => item.key);
  let start = performance.now();
  for (const key of keys) storage.get(key);
  record('memory: get', (since(start) / keys.length) * 1000, 'µs');
  start = performance.now();
  for (let i = 0; i < repeat; i++) storage.list(servicesPrefix, { limit: listSize });
  record(
    `memory: list ${listSize} of ${storage.count(servicesPrefix)}`,
    (since(start) / repeat) * 1000,
    'µs',
  );
  start = performance.now();
  const past = storage.compactedRevision + 7;
  for (let i = 0; i < repeat; i++) storage.list(servicesPrefix, { limit: listSize, revision: past + i * 50 });
  record(`memory: list ${listSize} at a past revision`, (since(start) / repeat) * 1000, 'µs');

  for (const watchers of [0, 100, 1000]) await fanOut(watchers);
}

async function fanOut(watchers: number): Promise<void> {
  const storage = createMemoryStorage(options);
  let delivered = 0;
  for (let i = 0; i < watchers; i++) storage.watch('core/endpoints/', 1, () => delivered++);
  const others = 10_000;
  const objects = Array.from({ length: others }, (_, i) => service(`s${i}`));
  let start = performance.now();
  for (const [i, object] of objects.entries()) {
    await storage.commit([{ key: objectKey('', 'services', 'default', `s${i}`), expect: 'absent', object }]);
  }
  record(`memory: commit beside ${watchers} watchers of others`, (since(start) / others) * 1000, 'µs');
  if (watchers === 0) return;
  const events = 1_000_000 / watchers;
  const watched = Array.from({ length: events }, (_, i) => service(`s${i}`));
  start = performance.now();
  for (const [i, object] of watched.entries()) {
    await storage.commit([{ key: objectKey('', 'endpoints', 'default', `s${i}`), expect: 'absent', object }]);
  }
  if (delivered !== events * watchers) throw new Error(`${delivered} events were delivered`);
  record(`memory: deliveries to ${watchers} watchers`, (delivered / since(start)) * 1000, '/s', '≥ 200,000');
}

async function disk(parent: string): Promise<void> {
  const root = fs.mkdtempSync(path.join(parent, 'servicenet-bench-'));
  try {
    const storage = await openDiskStorage(path.join(root, 'commits'), options);
    await commits('disk', storage, 1, 2000);
    for (const concurrency of [16, 64]) await commits('disk', storage, concurrency, 20_000);
    await storage.close();
    await restart(path.join(root, 'restart'));
  } finally {
    fs.rmSync(root, { recursive: true });
  }
}

/** From the logs (as after a crash while busy), then from one snapshot (as after a quiet time). */
async function restart(directory: string): Promise<void> {
  const storage = await openDiskStorage(directory, options);
  for (let i = 0; i < restartObjects; i += 500) {
    await storage.commit(
      Array.from({ length: 500 }, (_, j) => {
        const name = `s${i + j}`;
        return { key: objectKey('', 'services', 'default', name), expect: 'absent', object: service(name) };
      }),
    );
  }
  await storage.close();
  openInProcess('from the logs', directory, 0);

  // Another life, long after: it writes a snapshot and removes what is older.
  const writing = await openDiskStorage(directory, { ...later(1), snapshotAfter: 1 });
  await writing.commit([{ key: 'core/services/default/last', expect: 'any', object: service('last') }]);
  const logs = () => fs.readdirSync(directory).filter((name) => name.startsWith('log-')).length;
  while (logs() > 1) await new Promise((resolve) => setTimeout(resolve, 20));
  await writing.close();
  openInProcess('from a snapshot', directory, 2);
}

/** The same store when its past is so many times over. */
function later(lives: number): DiskStorageOptions {
  return { ...options, clock: () => Date.now() + lives * options.retain.milliseconds };
}

/** Measures in a process of its own, whose heap holds nothing else. */
function openInProcess(how: string, directory: string, lives: number): void {
  const { stdout } = spawnSync(
    process.execPath,
    [...process.execArgv, import.meta.filename, openFlag, directory, String(lives)],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const [open = NaN, decode = NaN, memory = NaN] = stdout.split(' ').map(Number);
  record(`disk: restart with ${restartObjects} objects ${how}`, open, 'ms');
  record(`disk: decoding them, when asked for`, decode, 'ms');
  record(`disk: resident memory then`, memory, 'MiB');
}

async function open(directory: string, lives: number): Promise<void> {
  let start = performance.now();
  const storage = await openDiskStorage(directory, later(lives));
  const opened = since(start);
  start = performance.now();
  const named = storage.list(servicesPrefix).items.filter((item) => item.object.metadata.name !== undefined);
  if (named.length < restartObjects) throw new Error('objects are missing');
  console.log(opened, since(start), process.memoryUsage().rss / 2 ** 20);
  await storage.close();
}

const [, , argument = os.tmpdir(), directory = '', lives = ''] = process.argv;
if (argument === openFlag) {
  await open(directory, Number(lives));
} else {
  await memory();
  await disk(argument);
  await report('storage', rows);
}
