import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Flow } from '../../src/network/flows/flow.ts';
import { recordAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { startPage, type TestPage, TestTab } from '../support/page.ts';

/** What a tab is told of flows, beside a control socket that says what the test wants. */

const patience = { timeout: 60_000, interval: 50 };

let server: TestServer;
let page: TestPage;
let folder: string;
let control: Server;
/** Who looks at flows, and what was asked for. */
const viewers: { readonly socket: Socket; readonly request: unknown }[] = [];

beforeAll(async () => {
  server = await startApiServer({ nodes: 1 });
  folder = await mkdtemp(join(tmpdir(), 'flows-'));
  const path = join(folder, 'control.sock');
  control = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    createInterface({ input: socket }).on('line', (line) => {
      viewers.push({ socket, request: recordAt(JSON.parse(line))['flows'] });
    });
  });
  control.listen(path);
  await once(control, 'listening');
  page = await startPage(server.client, {}, undefined, path);
});
afterAll(async () => {
  await page.close();
  for (const { socket } of viewers) socket.destroy();
  control.close();
  await server.stop();
  await rm(folder, { recursive: true });
});

function flowOf(id: number, more: Partial<Flow> = {}): Flow {
  return {
    ...{ id, time: new Date().toISOString(), protocol: 'TCP', outcome: 'connected' },
    from: { kind: 'Pod', namespace: 'shop', name: 'cart-1', address: '10.0.0.1' },
    to: { kind: 'Pod', namespace: 'shop', name: 'catalog-1', address: '10.0.1.1', port: 8080 },
    ...more,
  };
}

async function viewerOf(count: number): Promise<(typeof viewers)[number]> {
  await vi.waitFor(() => expect(viewers).toHaveLength(count), patience);
  const viewer = viewers[count - 1];
  if (viewer === undefined) throw new Error('nobody looks');
  return viewer;
}

function say({ socket }: (typeof viewers)[number], line: object): void {
  socket.write(`${JSON.stringify(line)}\n`);
}

describe('a tab that looks at flows', () => {
  test(
    'has them collected until it looks at something else, in groups and each',
    { timeout: 180_000 },
    async () => {
      const tab = new TestTab(page.port);
      await tab.follow({ view: 'map' });
      await vi.waitFor(() => expect(tab.messages.length).toBeGreaterThan(0), patience);
      expect(viewers).toHaveLength(0);
      const outcomes = ['dropped', 'connected'];
      tab.say({
        follow: {
          view: 'flows',
          namespace: 'shop',
          flows: { from: 'deploy/cart', outcomes, by: 'netpol/deny-in' },
        },
      });
      const viewer = await viewerOf(1);
      expect(viewer.request).toMatchObject({
        namespace: 'shop',
        from: 'deploy/cart',
        ...{ outcomes, by: 'netpol/deny-in' },
        last: 10_000,
      });
      say(viewer, { known: [flowOf(1), flowOf(2)] });
      await vi.waitFor(() => {
        expect([...(tab.rows.get('flowGroup')?.values() ?? [])]).toMatchObject([
          { from: 'pod/shop/cart-1', to: 'pod/shop/catalog-1', outcome: 'connected', count: 2 },
        ]);
        expect(tab.row('flowWatch', 'flows')).toEqual({ key: 'flows', state: 'watching', total: 1 });
      }, patience);
      say(viewer, { flows: [flowOf(3, { outcome: 'dropped', packets: 2 })], lost: 7 });
      await vi.waitFor(() => {
        const groups = [...(tab.rows.get('flowGroup')?.values() ?? [])].map((group) => recordAt(group));
        expect(groups.map(({ outcome, count }) => [outcome, count]).toSorted()).toEqual([
          ['connected', 2],
          ['dropped', 2],
        ]);
        expect(tab.row('flowWatch', 'flows')).toMatchObject({
          trouble: { reason: 'FlowsSampled' },
          total: 2,
        });
      }, patience);
      // Numbers follow each other, whoever has told what changed.
      const told = tab.messages.filter((message) => !('status' in message));
      const sequence = told.map((message) => Number(recordAt(message, 'state')['seq'] ?? message['seq']));
      expect(sequence).toEqual(sequence.map((_, index) => index + 1));

      const ended = once(viewer.socket, 'close');
      tab.say({ follow: { view: 'flows', flows: { each: true } } });
      const other = await viewerOf(2);
      await ended;
      say(other, { known: [flowOf(1), flowOf(3, { outcome: 'dropped', packets: 2 })] });
      await vi.waitFor(() => {
        expect(tab.row('flow', '3')).toMatchObject({ outcome: 'dropped', packets: 2 });
        expect(tab.row('flow', '1')).toMatchObject({ from: 'pod/shop/cart-1' });
      }, patience);
      const left = once(other.socket, 'close');
      tab.say({ follow: { view: 'map' } });
      await left;
      tab.socket.terminate();
    },
  );

  test('of Reach has them collected once it has a namespace', { timeout: 120_000 }, async () => {
    const before = viewers.length;
    const tab = new TestTab(page.port);
    await tab.follow({ view: 'reach' });
    // The next state comes after what the first one began.
    const isOf = (namespace: string | undefined) => () =>
      expect(
        tab.messages.some((message) => {
          const follow = recordAt(message, 'state', 'follow');
          return follow['view'] === 'reach' && follow['namespace'] === namespace;
        }),
      ).toBe(true);
    await vi.waitFor(isOf(undefined), patience);
    tab.say({ follow: { view: 'reach', namespace: 'default' } });
    await vi.waitFor(isOf('default'), patience);
    const viewer = await viewerOf(before + 1);
    expect(viewer.request).toMatchObject({ namespace: 'default' });
    const ended = once(viewer.socket, 'close');
    tab.say({ follow: { view: 'reach' } });
    await ended;
    tab.socket.terminate();
  });

  test('is told why there are none, and gets them when there are some', { timeout: 180_000 }, async () => {
    const before = viewers.length;
    const tab = new TestTab(page.port);
    await tab.follow({ view: 'flows' });
    const first = await viewerOf(before + 1);
    first.socket.end(`${JSON.stringify({ error: 'there are none here' })}\n`);
    await vi.waitFor(() => {
      expect(tab.row('flowWatch', 'flows')).toEqual({
        ...{ key: 'flows', state: 'ended', total: 0, whyEnded: 'there are none here' },
      });
    }, patience);
    const again = await viewerOf(before + 2);
    say(again, { known: [flowOf(1)] });
    await vi.waitFor(() => {
      expect(tab.row('flowWatch', 'flows')).toEqual({ key: 'flows', state: 'watching', total: 1 });
    }, patience);
    const ended = once(again.socket, 'close');
    tab.socket.terminate();
    await ended;
  });

  test('of a cluster that has none is told why', { timeout: 120_000 }, async () => {
    const other = await startPage(server.client, { whyNoFlows: 'this one has no network' });
    const tab = new TestTab(other.port);
    await tab.follow({ view: 'flows' });
    await vi.waitFor(() => {
      expect(tab.row('flowWatch', 'flows')).toMatchObject({
        ...{ state: 'ended', whyEnded: 'this one has no network' },
      });
    }, patience);
    tab.socket.terminate();
    await other.close();
  });
});
