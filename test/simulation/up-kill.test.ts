import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isRecord, type JsonRecord } from '../../src/objects/json.ts';
import { type Access, UpProcess } from './up-process.ts';

/** How often the server is killed. */
const rounds = Number(process.env['SERVICENET_UP_KILL_ROUNDS'] ?? 2);
/** A round ends when so many of its writes were acknowledged, whatever time that takes. */
const acknowledgements = (round: number): number => 5 + ((round * 37) % 41);
const writerCount = 8;
const keysPerWriter = 3;

/** Small ranges, so that filling them shows what is missing. The network would make a Service of its own, kube-dns. */
const flags = [
  ...['--service-cluster-ip-range', '10.7.0.0/26', '--service-node-port-range', '30000-30031'],
  ...['--nodes=0', '--network=off', '--page=off'],
];
const addressCount = 62;
const nodePortCount = 32;

const services = '/api/v1/namespaces/default/services';
const configMaps = '/api/v1/namespaces/default/configmaps';

/** What a client knows of an object; undefined: that it is not there. */
type Known = JsonRecord | undefined;

/** A write whose answer never came: the object is as before, or as this says. */
interface Open {
  /** Undefined: a delete. */
  readonly value: string | undefined;
}

let directory = '';
beforeAll(() => {
  directory = fs.mkdtempSync(path.join(os.tmpdir(), 'servicenet-up-kill-'));
});
afterAll(() => fs.rmSync(directory, { recursive: true }));

test(
  `a server that is killed ${rounds} times loses no acknowledged write, and no address or port`,
  async () => {
    const known = new Map<string, Known>();
    let access: Access | undefined;
    const progress: Progress = { acknowledged: 0 };
    let revision = 0;
    for (let round = 0; round <= rounds; round++) {
      const up = await UpProcess.start(directory, flags, access);
      access ??= up.access;
      try {
        revision = await checkObjects(up, known, open, revision);
        await checkRanges(up);
        if (round === rounds) break;
        open.clear();
        const enough = progress.acknowledged + acknowledgements(round);
        const done = Promise.allSettled(
          Array.from({ length: writerCount }, (_, n) => write(up, n, known, progress)),
        );
        while (progress.acknowledged < enough && up.running) await sleep(1);
        await up.kill();
        for (const result of await done) if (result.status === 'rejected') throw result.reason;
      } finally {
        await up.kill();
      }
    }
    // Else the test has not tested what it says.
    expect(progress.acknowledged).toBeGreaterThan(rounds * 10);
    console.log(`${rounds} kills: ${progress.acknowledged} writes acknowledged, 0 lost`);
  },
  rounds * 30_000,
);

const open = new Map<string, Open>();

/** What all writers have done. */
interface Progress {
  acknowledged: number;
}

/** Writes to keys of its own until the server is gone. */
async function write(
  up: UpProcess,
  writer: number,
  known: Map<string, Known>,
  progress: Progress,
): Promise<void> {
  for (let count = 0; ; count++) {
    const collection = Math.random() < 0.7 ? services : configMaps;
    const name = `w${writer}-${Math.floor(Math.random() * keysPerWriter)}`;
    const url = `${collection}/${name}`;
    const before = known.get(url);
    const value = before !== undefined && Math.random() < 0.4 ? undefined : `${Date.now()}-${count}`;
    open.set(url, { value });
    try {
      const answer = await send(up, collection, url, name, before, value);
      open.delete(url);
      // A headless Service may not become another one, and ranges may be full: then nothing is written.
      if (answer.status === 422) continue;
      const text = JSON.stringify(answer.body);
      if (answer.status === 500 && text.includes('range is full')) continue;
      expect(answer.status, text).toBeLessThan(300);
      known.set(url, value === undefined ? undefined : answer.body);
      progress.acknowledged++;
    } catch (error) {
      if (error instanceof Error && 'code' in error) return;
      if (error instanceof SyntaxError) return;
      throw error;
    }
  }
}

async function send(
  up: UpProcess,
  collection: string,
  url: string,
  name: string,
  before: Known,
  value: string | undefined,
) {
  if (value === undefined) return up.call('DELETE', url);
  const object = {
    metadata: { name, annotations: { value } },
    ...(collection === services ? { spec: serviceSpec() } : {}),
  };
  return before === undefined ? up.call('POST', collection, object) : up.call('PUT', url, object);
}

function serviceSpec(): object {
  const types = ['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName', 'Headless'];
  const type = types[Math.floor(Math.random() * types.length)] ?? 'ClusterIP';
  if (type === 'ExternalName') return { type, externalName: 'example.com' };
  const ports = [
    { name: 'a', port: 80 },
    { name: 'b', port: 81 },
  ].slice(0, 1 + Math.floor(Math.random() * 2));
  return type === 'Headless' ? { clusterIP: 'None', ports } : { type, ports };
}

/** Every object is as it was acknowledged, or as the write that was on its way would have it. */
async function checkObjects(
  up: UpProcess,
  known: Map<string, Known>,
  pending: ReadonlyMap<string, Open>,
  revision: number,
) {
  const actual = new Map<string, JsonRecord>();
  let now = 0;
  for (const collection of [services, configMaps]) {
    const { body } = await up.call('GET', collection);
    now = Number(memberOf(body, 'metadata')['resourceVersion']);
    for (const item of itemsOf(body)) actual.set(`${collection}/${nameOf(item)}`, item);
  }
  for (const key of new Set([...known.keys(), ...pending.keys()])) {
    const item = actual.get(key);
    const before = known.get(key);
    const open = pending.get(key);
    if (open !== undefined && valueOf(item) === open.value) {
      // Durable, but the process died before it could say so.
      known.set(key, item);
      continue;
    }
    expect(item === undefined ? undefined : content(item), key).toEqual(
      before === undefined ? undefined : content(before),
    );
    revision = Math.max(revision, Number(memberOf(before ?? {}, 'metadata')['resourceVersion'] ?? 0));
  }
  expect(now).toBeGreaterThanOrEqual(revision);
  return now;
}

/** Addresses and ports in use are those of the Services, once each; all others can be had. */
async function checkRanges(up: UpProcess): Promise<void> {
  const stored = itemsOf((await up.call('GET', services)).body).map((item) => memberOf(item, 'spec'));
  const addresses = stored
    .flatMap((spec) => stringsOf(spec['clusterIPs']))
    .filter((address) => address !== 'None');
  const ports = stored.flatMap((spec) => recordsOf(spec['ports']).flatMap((port) => port['nodePort'] ?? []));
  const objects = itemsOf((await up.call('GET', '/apis/networking.k8s.io/v1/ipaddresses')).body).map(nameOf);
  expect(objects.toSorted()).toEqual(addresses.toSorted());
  expect(new Set(addresses).size).toBe(addresses.length);
  expect(new Set(ports).size).toBe(ports.length);

  const free = { addresses: addressCount - addresses.length, ports: nodePortCount - ports.length };
  expect(await fill(up, 'ports', 'NodePort', nodePortCount)).toBe(Math.min(free.addresses, free.ports));
  expect(await fill(up, 'addresses', 'ClusterIP', addressCount)).toBe(free.addresses);
}

/** How many Services of a type can be made until a range is full. They are removed again. */
async function fill(up: UpProcess, prefix: string, type: string, most: number): Promise<number> {
  const made = await Promise.all(
    Array.from({ length: most }, async (_, n) => {
      const name = `${prefix}-${n}`;
      const { status } = await up.call('POST', services, {
        metadata: { name },
        spec: { type, ports: [{ port: 80 }] },
      });
      expect([201, 500, 422]).toContain(status);
      return status === 201 ? [name] : [];
    }),
  );
  await Promise.all(made.flat().map((name) => up.call('DELETE', `${services}/${name}`)));
  return made.flat().length;
}

function content({ kind: _kind, apiVersion: _version, ...rest }: JsonRecord): JsonRecord {
  return rest;
}

function valueOf(item: Known): unknown {
  return item === undefined ? undefined : memberOf(memberOf(item, 'metadata'), 'annotations')['value'];
}

function nameOf(item: JsonRecord): string {
  return String(memberOf(item, 'metadata')['name']);
}

function itemsOf(list: JsonRecord): JsonRecord[] {
  return recordsOf(list['items']);
}

function recordsOf(value: unknown): JsonRecord[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

function stringsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

function memberOf(object: JsonRecord, name: string): JsonRecord {
  const value = object[name];
  return isRecord(value) ? value : {};
}
