import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cloudPrivateIPConfigs } from '../../src/client/resources.ts';
import { ResourceClient } from '../../src/client/resource-client.ts';
import { InMemoryCloud } from '../../src/platforms/openshift/cloud-private-ip/cloud.ts';
import { cloudPrivateIPController } from '../../src/platforms/openshift/cloud-private-ip/controller.ts';
import { egressIPController } from '../../src/platforms/openshift/egress-ip/controller.ts';
import { runControllers, type RunningControllers, type RunOptions } from '../../src/controllers/run.ts';
import { parseStrictAddress } from '../../src/objects/address.ts';
import { isRecord } from '../../src/objects/json.ts';
import { at, listAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { call } from '../support/test-server.ts';

const path = '/apis/cloud.network.openshift.io/v1/cloudprivateipconfigs';
let server: TestServer;

beforeAll(async () => {
  server = await startApiServer({ platform: 'openshift', controllers: [] });
  for (const name of ['a', 'b']) await send('POST', '/api/v1/nodes', { metadata: { name } });
});
afterAll(() => server.stop());

async function send(method: string, to: string, body?: object): Promise<number> {
  const patch = method === 'PATCH' ? { contentType: 'application/merge-patch+json' } : {};
  const { status } = await call(server.client, method, to, { ...(body && { body }), ...patch });
  return status;
}

const make = (name: string, node: string): Promise<number> =>
  send('POST', path, {
    ...{ apiVersion: 'cloud.network.openshift.io/v1', kind: 'CloudPrivateIPConfig', metadata: { name } },
    spec: { node },
  });

/** What a watch has seen of the statuses of an object, each once in a row: `node status message`. */
async function watched(name: string): Promise<{ readonly seen: string[]; end(): Promise<void> }> {
  const seen: string[] = [];
  const stopping = new AbortController();
  const query = { fieldSelector: `metadata.name=${name}`, watch: 'true' };
  const stream = await server.client.stream(path, { query, signal: stopping.signal });
  const reading = (async () => {
    let text = '';
    for await (const piece of stream.chunks) {
      const lines = `${text}${piece.toString()}`.split('\n');
      text = lines.pop() ?? '';
      for (const line of lines) {
        const event: unknown = JSON.parse(line);
        const object = isRecord(event) ? event['object'] : undefined;
        const [condition] = listAt(object, 'status', 'conditions');
        const node = textAt(object, 'status', 'node') || '-';
        const held = listAt(object, 'metadata', 'finalizers').length > 0 ? '' : ' (no finalizer)';
        const type = isRecord(event) ? event['type'] : '';
        const said =
          type === 'DELETED'
            ? 'deleted'
            : condition === undefined
              ? 'no status'
              : `${node} ${textAt(condition, 'status')} ${textAt(condition, 'message')}${held}`;
        if (seen.at(-1) !== said) seen.push(said);
      }
    }
  })().catch(() => undefined);
  return {
    seen,
    end: async () => {
      stopping.abort();
      await reading;
    },
  };
}

/** Runs the controller with a cloud while `work` runs. */
async function withCloud(
  cloud: InMemoryCloud,
  work: () => Promise<void>,
  options: Pick<Partial<RunOptions>, 'clock' | 'log'> = {},
): Promise<void> {
  const running: RunningControllers = runControllers({
    transport: server.client,
    controllers: [cloudPrivateIPController(cloud)],
    log: pino({ enabled: false }),
    ...options,
  });
  try {
    await work();
  } finally {
    await running.stop();
  }
}

const patience = { timeout: 60_000 };
const added = ['a Unknown Adding IP address', 'a True IP address successfully added'];

describe('a CloudPrivateIPConfig', () => {
  test.each<[string, boolean, readonly string[]]>([
    [
      'is released and added where the cloud moves nothing',
      false,
      [
        'a Unknown Deleting IP address',
        '- True IP address successfully deleted',
        'b Unknown Adding IP address',
        'b True IP address successfully added',
      ],
    ],
    [
      'is moved where the cloud can',
      true,
      ['a Unknown Moving IP address', 'b True IP address successfully moved'],
    ],
  ])('%s, and says each step', async (_, canMove, steps) => {
    const cloud = new InMemoryCloud({ canMove });
    const name = canMove ? '192.0.2.1' : 'fc00.f853.0ccd.e793.0000.0000.0000.0054';
    const watch = await watched(name);
    await withCloud(cloud, async () => {
      expect(await make(name, 'a')).toBe(201);
      await expect.poll(() => watch.seen.at(-1), patience).toBe(added[1]);
      await send('PATCH', `${path}/${name}`, { spec: { node: 'b' } });
      await expect.poll(() => watch.seen.at(-1), patience).toBe(steps.at(-1));
      expect([...cloud.assigned.values()]).toEqual(['b']);
      await send('DELETE', `${path}/${name}`);
      await expect.poll(() => watch.seen.at(-1), patience).toBe('deleted');
      expect(cloud.assigned.size).toBe(0);
    });
    await watch.end();
    expect(watch.seen).toEqual([
      'no status',
      // The finalizer comes behind the first status.
      'a Unknown Adding IP address (no finalizer)',
      ...added,
      ...steps,
      'b Unknown Deleting IP address',
      'deleted',
    ]);
  });

  test('of a node that is not there fails, keeps the node and is not tried again', async () => {
    let asked = 0;
    const failure = (): undefined => {
      asked++;
    };
    const watch = await watched('192.0.2.3');
    await withCloud(new InMemoryCloud({ failure }), async () => {
      await make('192.0.2.3', 'gone');
      const said = 'gone False Error processing cloud assignment request, err: node "gone" not found';
      await expect.poll(() => watch.seen.at(-1), patience).toBe(said);
      await send('PATCH', `${path}/192.0.2.3`, { spec: { node: 'a' } });
      await expect.poll(() => watch.seen.at(-1), patience).toBe(added[1]);
    });
    await watch.end();
    // Once: a machine that is gone has nothing to release.
    expect(asked).toBe(1);
  });

  test('that the cloud refuses says why, keeps the node, and is tried again until it works', async () => {
    const cloud = new InMemoryCloud({ capacity: 1 });
    const watch = await watched('192.0.2.5');
    await withCloud(cloud, async () => {
      await make('192.0.2.4', 'b');
      await expect.poll(() => cloud.assigned.size, patience).toBe(1);
      await make('192.0.2.5', 'b');
      const refused =
        'b False Error processing cloud assignment request, err: b has no capacity for another address';
      await expect.poll(() => watch.seen, patience).toContain(refused);
      await send('DELETE', `${path}/192.0.2.4`);
      await expect.poll(() => watch.seen.at(-1), patience).toBe('b True IP address successfully added');
    });
    await watch.end();
  });

  test('whose address the cloud has assigned already succeeds; one that is not there is released', async () => {
    const taken = new ResourceClient(server.client, cloudPrivateIPConfigs);
    const cloud = new InMemoryCloud();
    const address = parseStrictAddress('192.0.2.7');
    if (address === undefined) throw new Error('not read');
    await cloud.assign(address, 'a');
    await withCloud(cloud, async () => {
      await make('192.0.2.7', 'a');
      const status = async (): Promise<string> =>
        (await taken.get('', '192.0.2.7')).status?.conditions[0]?.status ?? '';
      await expect.poll(status, patience).toBe('True');
      await cloud.release(address, 'a');
      await send('DELETE', `${path}/192.0.2.7`);
      await expect.poll(() => send('GET', `${path}/192.0.2.7`), patience).toBe(404);
    });
  });

  test('whose cloud fails for ever is tried 15 times more, and then waits for a change', async () => {
    const [name, never] = ['192.0.2.8', 'a False Error processing cloud assignment request, err: never'];
    let [asked, isOpen] = [0, false];
    const failure = (): string | undefined => {
      asked++;
      return isOpen ? undefined : 'never';
    };
    const lines: unknown[] = [];
    const log = pino({ level: 'error' }, { write: (line: string) => lines.push(JSON.parse(line)) });
    const clock = new FakeClock();
    /** Half a minute, and a moment for the server: the longest back-off is 82 seconds. */
    const advance = async (): Promise<void> => {
      await clock.advance(30_000);
      await delay(5);
    };
    const givenUp = (): readonly unknown[] =>
      lines.filter((line) => textAt(line, 'msg') === 'reconcile failed too often, waiting for a change');
    const watch = await watched(name);
    const work = async (): Promise<void> => {
      await make(name, 'a');
      await expect.poll(() => advance().then(() => givenUp().length), patience).toBe(1);
      expect(at(givenUp()[0], 'retries')).toBe(15);
      await expect.poll(() => watch.seen.at(-1), patience).toBe(never);
      const tries = asked;
      expect(tries).toBeLessThanOrEqual(16);
      for (let times = 0; times < 20; times++) await advance();
      expect([asked, watch.seen.at(-1)]).toEqual([tries, never]);
      isOpen = true;
      await send('PATCH', `${path}/${name}`, { spec: { node: 'b' } });
      await expect
        .poll(() => advance().then(() => watch.seen.at(-1)), patience)
        .toBe('b True IP address successfully added');
    };
    await withCloud(new InMemoryCloud({ failure }), work, { clock, log });
    await watch.end();
  });

  test.each(['fc00::54', 'fc00.f853.0CCD.e793.0000.0000.0000.0054', 'web'])(
    'has no name %s',
    async (name) => {
      expect(await make(name, 'a')).toBe(422);
    },
  );
});

/** The rows of cloud-network-config-controller's `cloudprivateipconfig_controller_test.go` that begin in the middle. */
describe('a CloudPrivateIPConfig that is found', () => {
  const finalizer = 'cloudprivateipconfig.cloud.network.openshift.io/finalizer';
  const name = '192.0.2.100';
  const [adding, deleting, released] = [
    'Unknown Adding IP address',
    'Unknown Deleting IP address',
    '- True IP address successfully deleted',
  ];
  const failed = (request: string, why = 'refused'): string =>
    `False Error processing cloud ${request} request, err: ${why}`;

  interface Found {
    readonly wants: string;
    readonly status: 'True' | 'False' | 'Unknown';
    /** `status.node`; default: none. */
    readonly at?: string;
    readonly isLeaving?: boolean;
    /** Which calls the cloud refuses. */
    readonly fails?: string;
    readonly canMove?: boolean;
    /** The node that the cloud has given the address to. */
    readonly given?: string;
  }

  /** Removes it whatever its state is. */
  const remove = async (): Promise<void> => {
    await send('DELETE', `${path}/${name}`);
    await send('PATCH', `${path}/${name}`, { metadata: { finalizers: null } });
    await expect.poll(() => send('GET', `${path}/${name}`), patience).toBe(404);
  };

  test.each<[string, Found, readonly string[], readonly string[]]>([
    [
      'while it is added, and has its address: done',
      { wants: 'a', at: 'a', status: 'Unknown', given: 'a' },
      [`a ${adding}`, 'a True IP address successfully added'],
      ['assign a'],
    ],
    [
      'while it is added, and the cloud refuses: the node stays',
      { wants: 'a', at: 'a', status: 'Unknown', fails: 'assign' },
      [`a ${adding}`, `a ${failed('assignment')}`],
      ['assign a'],
    ],
    [
      'behind a failure, without a node: it is added',
      { wants: 'a', status: 'False' },
      [`a ${adding}`, 'a True IP address successfully added'],
      ['assign a'],
    ],
    [
      'while it is deleted, and the cloud refuses: node and finalizer stay',
      { wants: 'a', at: 'a', status: 'True', isLeaving: true, fails: 'release' },
      [`a ${deleting}`, `a ${failed('release')}`],
      ['release a'],
    ],
    [
      'while it is deleted, behind a failure: it is released and goes',
      { wants: 'a', at: 'a', status: 'False', isLeaving: true, given: 'a' },
      [`a ${deleting}`, 'deleted'],
      ['release a'],
    ],
    [
      'for another node, and the cloud does not release it: the node stays',
      { wants: 'b', at: 'a', status: 'True', fails: 'release' },
      [`a ${deleting}`, `a ${failed('release')}`],
      ['release a'],
    ],
    [
      'for another node, and the cloud does not assign it there: the new node stays',
      { wants: 'b', at: 'a', status: 'True', given: 'a', fails: 'assign' },
      [`a ${deleting}`, released, `b ${adding}`, `b ${failed('assignment')}`],
      ['release a', 'assign b'],
    ],
    [
      'for a node that is not there: released, and not assigned',
      { wants: 'gone', at: 'a', status: 'True', given: 'a' },
      [`a ${deleting}`, released, `gone ${adding}`, `gone ${failed('assignment', 'node "gone" not found')}`],
      ['release a'],
    ],
    [
      'for a node that is not there, on a cloud that moves: the old node stays',
      { wants: 'gone', at: 'a', status: 'True', given: 'a', canMove: true },
      ['a Unknown Moving IP address', `a ${failed('move', 'node "gone" not found')}`],
      [],
    ],
  ])('%s', async (_, { wants, status, at: node, isLeaving, fails, canMove, given }, steps, calls) => {
    const asked: string[] = [];
    let isRecorded = false;
    const failure = (call: string, to: string): string | undefined => {
      if (isRecorded) asked.push(`${call} ${to}`);
      return isRecorded && call === fails ? 'refused' : undefined;
    };
    const cloud = new InMemoryCloud({ failure, ...(canMove === true && { canMove }) });
    const address = parseStrictAddress(name);
    if (address !== undefined && given !== undefined) await cloud.assign(address, given);
    isRecorded = true;
    await send('POST', path, {
      ...{ apiVersion: 'cloud.network.openshift.io/v1', kind: 'CloudPrivateIPConfig' },
      metadata: { name, finalizers: [finalizer] },
      spec: { node: wants },
    });
    const condition = { type: 'Assigned', status, reason: 'Before', message: 'before' };
    const conditions = [{ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }];
    const before = { ...(node === undefined ? {} : { node }), conditions };
    expect(await send('PATCH', `${path}/${name}/status`, { status: before })).toBe(200);
    if (isLeaving === true) await send('DELETE', `${path}/${name}`);
    const watch = await watched(name);
    try {
      await withCloud(cloud, async () => {
        await expect.poll(() => watch.seen, patience).toContain(steps.at(-1));
      });
    } finally {
      await watch.end();
      await remove();
    }
    expect(watch.seen.slice(0, steps.length + 1)).toEqual([`${node ?? '-'} ${status} before`, ...steps]);
    // What the cloud refuses is tried again.
    expect(asked.slice(0, calls.length)).toEqual(calls);
    expect(new Set(asked)).toEqual(new Set(calls));
  });
});

describe('an EgressIP on a cloud', () => {
  const eips = '/apis/k8s.ovn.org/v1/egressips';
  const machine = async (name: string, capacity: object): Promise<void> => {
    const config = [{ interface: 'eni', ifaddr: { ipv4: '10.0.0.0/24' }, capacity }];
    await send('POST', '/api/v1/nodes', {
      metadata: {
        ...{ name, labels: { 'k8s.ovn.org/egress-assignable': '' } },
        annotations: { 'cloud.network.openshift.io/egress-ipconfig': JSON.stringify(config) },
      },
    });
    const body = { status: { conditions: [{ type: 'Ready', status: 'True' }] } };
    await send('PATCH', `/api/v1/nodes/${name}/status`, body);
  };
  const read = async (to: string): Promise<unknown> => (await call(server.client, 'GET', to)).body;
  const itemsOf = async (name: string): Promise<readonly string[]> =>
    listAt(await read(`${eips}/${name}`), 'status', 'items').map(
      (item) => `${textAt(item, 'egressIP')} ${textAt(item, 'node')}`,
    );
  const configs = async (): Promise<readonly string[]> =>
    listAt(await read(path), 'items').flatMap((config) => {
      const owner = textAt(config, 'metadata', 'annotations', 'k8s.ovn.org/egressip-owner-ref');
      const at = `${textAt(config, 'metadata', 'name')} ${textAt(config, 'spec', 'node')} for ${owner}`;
      return owner === '' ? [] : [at];
    });

  test('has an address in its status once the cloud has given it, within the capacity of machines', async () => {
    let isOpen = false;
    const failure = (): string | undefined => (isOpen ? undefined : 'not now');
    const cloud = new InMemoryCloud({ failure });
    await machine('m1', { ipv4: 1 });
    await machine('m2', { ip: 1 });
    const running = runControllers({
      transport: server.client,
      controllers: [cloudPrivateIPController(cloud), egressIPController],
      log: pino({ enabled: false }),
    });
    try {
      const kind = { apiVersion: 'k8s.ovn.org/v1', kind: 'EgressIP', metadata: { name: 'web' } };
      const spec = (...egressIPs: string[]): object => ({ egressIPs, namespaceSelector: {} });
      await send('POST', eips, { ...kind, spec: spec('10.0.0.10', '10.0.0.11') });
      await expect.poll(configs, patience).toEqual(['10.0.0.10 m1 for web', '10.0.0.11 m2 for web']);
      expect(await itemsOf('web')).toEqual([]);
      isOpen = true;
      await expect.poll(() => itemsOf('web'), patience).toEqual(['10.0.0.10 m1', '10.0.0.11 m2']);
      // Both machines are full.
      await send('POST', eips, { ...kind, metadata: { name: 'late' }, spec: spec('10.0.0.12') });
      await send('PATCH', `${eips}/web`, { spec: spec('10.0.0.10') });
      await expect.poll(() => itemsOf('late'), patience).toEqual(['10.0.0.12 m2']);
      await expect.poll(() => itemsOf('web'), patience).toEqual(['10.0.0.10 m1']);
      await send('DELETE', `${eips}/web`);
      await send('DELETE', `${eips}/late`);
      await expect.poll(configs, patience).toEqual([]);
      expect(cloud.assigned.size).toBe(0);
    } finally {
      await running.stop();
    }
  });
});
