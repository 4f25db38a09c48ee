import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Transport } from '../../src/client/transport.ts';
import { parseRecord, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { askAsPage, credentials, startPage, type TestPage, TestTab } from '../support/page.ts';
import { call } from '../support/test-server.ts';

/** What tabs are told, and what the page answers. */

const patience = { timeout: 60_000, interval: 50 };

let server: TestServer;
let page: TestPage;
/** Watches that were opened, by their paths. */
const watches: string[] = [];
beforeAll(async () => {
  server = await startApiServer({ nodes: 2 });
  const recording: Transport = {
    server: server.client.server,
    request: (method, path, options) => server.client.request(method, path, options),
    stream: (path, options) => {
      watches.push(path);
      return server.client.stream(path, options);
    },
    close: () => Promise.resolve(),
  };
  page = await startPage(recording);
});
afterAll(async () => {
  await page.close();
  await server.stop();
});

async function make(path: string, body: unknown): Promise<void> {
  const { status } = await call(server.client, 'POST', path, { body });
  expect(status).toBe(201);
}

async function makeNamespace(name: string): Promise<string> {
  await make('/api/v1/namespaces', { metadata: { name } });
  return `/api/v1/namespaces/${name}`;
}

const web = { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 8080 }] };

describe('a tab', () => {
  test(
    'gets the state once, then changes with one more in seq, and what is gone',
    { timeout: 120_000 },
    async () => {
      const path = await makeNamespace('seen');
      const tab = new TestTab(page.port);
      await tab.follow({ view: 'map', namespace: 'seen' });
      await vi.waitFor(() => expect(tab.messages.length).toBeGreaterThan(0), patience);
      await make(`${path}/services`, { metadata: { name: 'web' }, spec: web });
      // Why, is known when all lists are read.
      const whole = {
        ...{ type: 'ClusterIP', ports: '80/TCP', endpoints: { ready: 0, total: 0 } },
        trouble: { reason: 'SelectorMatchesNothing' },
        whyNoEndpoint: { checks: [{ isMet: false, message: 'no Pod has the labels app=web' }] },
      };
      await vi.waitFor(() => expect(tab.row('service', 'seen/web')).toMatchObject(whole), patience);
      expect(tab.row('problem', 'SelectorMatchesNothing Service seen/web')).toBeDefined();
      await make('/apis/apps/v1/namespaces/seen/deployments', deployment('web'));
      await vi.waitFor(() => {
        expect(tab.row('service', 'seen/web')).toMatchObject({ endpoints: { ready: 2, total: 2 } });
        expect(tab.row('problem', 'SelectorMatchesNothing Service seen/web')).toBeUndefined();
      }, patience);
      const pods = [...(tab.rows.get('pod')?.values() ?? [])];
      expect(pods.map((pod) => recordAt(pod))).toMatchObject(
        [1, 2].map(() => ({
          namespace: 'seen',
          state: 'ready',
          workload: 'deployment/seen/web',
          services: ['seen/web'],
        })),
      );
      await call(server.client, 'DELETE', `${path}/services/web`);
      await vi.waitFor(() => expect(tab.row('service', 'seen/web')).toBeUndefined(), patience);
      // Others' namespaces are not told, but counted.
      for (const kind of ['service', 'pod', 'slice']) {
        for (const row of tab.rows.get(kind)?.values() ?? []) expect(textAt(row, 'namespace')).toBe('seen');
      }
      expect(tab.row('namespace', 'default')).toMatchObject({ services: 1 });
      const told = tab.messages.filter((message) => !('status' in message));
      const sequence = told.map((message) => recordAt(message, 'state')['seq'] ?? message['seq']);
      expect(sequence).toEqual(sequence.map((_, index) => index + 1));
      expect(told.filter((message) => 'state' in message)).toHaveLength(1);
      tab.socket.terminate();
    },
  );

  test(
    'that comes later, and scripts, get what the first one has; each kind is watched once for all',
    { timeout: 120_000 },
    async () => {
      const tabs = [new TestTab(page.port), new TestTab(page.port)];
      for (const tab of tabs) await tab.follow({ view: 'map' });
      const path = await makeNamespace('twice');
      await make(`${path}/services`, { metadata: { name: 'web' }, spec: web });
      const late = new TestTab(page.port);
      await late.follow({ view: 'map' });
      await vi.waitFor(async () => {
        const { text } = await askAsPage(page.port, 'GET', '/data/state?view=map');
        const rows = recordAt(parseRecord(text), 'rows');
        for (const tab of [...tabs, late]) {
          for (const [kind, list] of Object.entries(rows)) {
            const byKey = (a: unknown, b: unknown): number => (textAt(a, 'key') < textAt(b, 'key') ? -1 : 1);
            const own = [...(tab.rows.get(kind)?.values() ?? [])].sort(byKey);
            expect(own).toEqual((Array.isArray(list) ? list : []).toSorted(byKey));
          }
        }
      }, patience);
      expect(watches.filter((each) => each === '/api/v1/pods')).toHaveLength(1);
      // A kind that is not served is looked for again.
      const served = watches.filter((each) =>
        /^\/api\/|\/(?:discovery|networking|coordination)\.k8s/.test(each),
      );
      expect(new Set(served).size).toBe(served.length);
      // Of Gateway API seven.
      expect(new Set(watches).size).toBeLessThanOrEqual(18 + 7);
      for (const tab of [...tabs, late]) tab.socket.terminate();
    },
  );

  test('sees all about one Service, and then another view', { timeout: 120_000 }, async () => {
    const path = await makeNamespace('one');
    for (const name of ['web', 'other']) {
      await make(`${path}/services`, { metadata: { name }, spec: { ...web, selector: { app: name } } });
      await make('/apis/apps/v1/namespaces/one/deployments', deployment(name));
    }
    const tab = new TestTab(page.port);
    await tab.follow({ view: 'service', namespace: 'one', name: 'web' });
    await vi.waitFor(() => {
      expect(tab.rows.get('pod')?.size).toBe(2);
      expect(recordAt(tab.row('serviceDetail', 'one/web'))).toMatchObject({
        dnsNames: ['web.one.svc.cluster.local'],
        ports: [{ port: 80, targetPort: '8080', targets: [{ port: 8080, endpoints: 2 }] }],
        endpoints: [{ ready: true }, { ready: true }],
      });
    }, patience);
    expect([...(tab.rows.get('service')?.keys() ?? [])]).toEqual(['one/web']);
    expect(tab.rows.get('slice')?.size).toBe(1);
    const scaled = { spec: { replicas: 1 } };
    await server.client.request('PATCH', '/apis/apps/v1/namespaces/one/deployments/web', {
      ...{ body: scaled, contentType: 'application/merge-patch+json' },
    });
    await vi.waitFor(() => expect(tab.rows.get('pod')?.size).toBe(1), patience);
    tab.say({ follow: { view: 'events', namespace: 'one' } });
    await vi.waitFor(() => {
      expect(tab.rows.get('pod')).toBeUndefined();
      expect(tab.rows.get('event')?.size).toBeGreaterThan(0);
    }, patience);
    tab.socket.terminate();
  });

  test.each([{ follow: { view: 'none' } }, { follow: { view: 'service' } }, {}, [], 'text'])(
    'that says %j is ended',
    async (message) => {
      const tab = new TestTab(page.port);
      await once(tab.socket, 'open');
      tab.say({ session: credentials.session });
      tab.say(message);
      expect(await tab.closed).toBe(4400);
    },
  );

  test(
    'that does not read gets no more rows until it does, and then how all is',
    { timeout: 300_000 },
    async () => {
      const path = await makeNamespace('slow');
      const slow = new TestTab(page.port);
      await slow.follow({ view: 'map' });
      await vi.waitFor(
        () => expect(slow.row('node', 'node-1') ?? slow.rows.get('node')).toBeDefined(),
        patience,
      );
      slow.socket.pause();
      // Each round changes rows of 1.5 MiB in all; the kernel's buffers take some of them, and the page 4 MiB.
      const names = ['web-0', 'web-1', 'web-2'];
      const message = (round: number): string => `${'x'.repeat(512 * 1024)}-${round}`;
      // Nobody schedules them: their status stays as the test writes it.
      const spec = { schedulerName: 'nobody', containers: [{ name: 'c', image: 'nginx' }] };
      for (const name of names) await make(`${path}/pods`, { metadata: { name }, spec });
      const other = new TestTab(page.port);
      await other.follow({ view: 'map', namespace: 'slow' });
      const rounds = 12;
      for (let round = 1; round <= rounds; round++) {
        const body = { status: { phase: 'Failed', message: message(round) } };
        const patches = names.map((name) =>
          server.client.request('PATCH', `${path}/pods/${name}/status`, {
            ...{ body, contentType: 'application/merge-patch+json' },
          }),
        );
        await Promise.all(patches);
        await vi.waitFor(
          () => expect(textAt(other.row('pod', 'slow/web-2'), 'trouble', 'message')).toBe(message(round)),
          patience,
        );
      }
      const before = slow.messages.length;
      slow.socket.resume();
      await vi.waitFor(
        () => expect(textAt(slow.row('pod', 'slow/web-0'), 'trouble', 'message')).toBe(message(rounds)),
        patience,
      );
      const states = slow.messages.slice(before).filter((message) => 'state' in message);
      expect(states.length).toBeGreaterThanOrEqual(1);
      for (const tab of [slow, other]) tab.socket.terminate();
    },
  );

  test(
    'gets the changes behind a state of many megabytes, and not that state again',
    { timeout: 300_000 },
    async () => {
      const path = await makeNamespace('large');
      const spec = { schedulerName: 'nobody', containers: [{ name: 'c', image: 'nginx' }] };
      const fail = (name: string, message: string) =>
        server.client.request('PATCH', `${path}/pods/${name}/status`, {
          ...{ body: { status: { phase: 'Failed', message } }, contentType: 'application/merge-patch+json' },
        });
      // Far more than the buffers of the kernel take.
      for (let n = 0; n < 32; n++) {
        await make(`${path}/pods`, { metadata: { name: `web-${n}` }, spec });
        await fail(`web-${n}`, 'x'.repeat(512 * 1024));
      }
      const follow = { view: 'map', namespace: 'large' } as const;
      const other = new TestTab(page.port);
      await other.follow(follow);
      await vi.waitFor(() => expect(other.row('pod', 'large/web-31')).toBeDefined(), patience);
      const slow = new TestTab(page.port);
      await slow.follow(follow);
      slow.socket.pause();
      for (let round = 1; round <= 10; round++) {
        await fail('web-0', `round ${round}`);
        await vi.waitFor(
          () => expect(textAt(other.row('pod', 'large/web-0'), 'trouble', 'message')).toBe(`round ${round}`),
          patience,
        );
      }
      slow.socket.resume();
      await vi.waitFor(
        () => expect(textAt(slow.row('pod', 'large/web-0'), 'trouble', 'message')).toBe('round 10'),
        patience,
      );
      expect(slow.messages.filter((message) => 'state' in message)).toHaveLength(1);
      for (const tab of [slow, other]) tab.socket.terminate();
    },
  );
});

describe('answers', () => {
  test('a trace is that of the command', { timeout: 120_000 }, async () => {
    const path = await makeNamespace('traced');
    await make(`${path}/services`, { metadata: { name: 'web' }, spec: web });
    await make('/apis/apps/v1/namespaces/traced/deployments', deployment('web'));
    const body = { from: 'deploy/traced/web', to: 'svc/traced/web:80' };
    await vi.waitFor(async () => {
      const { status, text } = await askAsPage(page.port, 'POST', '/data/trace', body);
      expect(status).toBe(200);
      expect(parseRecord(text)).toMatchObject({
        reachable: true,
        traces: [{ endpoints: [{}, {}], hops: [{}, {}] }],
      });
    }, patience);
    const wrong = await askAsPage(page.port, 'POST', '/data/trace', {
      from: 'deploy/traced/none',
      to: 'outside:80',
    });
    expect(wrong.status).toBe(400);
    expect(parseRecord(wrong.text)).toMatchObject({ reason: 'BadRequest' });
  });

  test('a plan of pools is that of the command', async () => {
    const none = await askAsPage(page.port, 'POST', '/data/pools/plan', {
      yaml: 'kind: Pod\nmetadata: {name: a}',
    });
    expect(none.status).toBe(400);
    const yaml = 'kind: AddressPool\nmetadata: {name: a}\nspec: {addresses: [nonsense]}';
    const answer = await askAsPage(page.port, 'POST', '/data/pools/plan', { yaml });
    expect(answer.status).toBe(200);
    expect(parseRecord(answer.text)).toMatchObject({
      effects: [],
      problems: [expect.stringContaining('nonsense'), 'a: spec.addresses: has no usable range'],
    });
  });

  test('one packet a second is sent, and to the cluster alone', { timeout: 120_000 }, async () => {
    const sent: string[] = [];
    const checked = await startPage(
      server.client,
      {},
      {
        check: (_source, { address, port }) => {
          sent.push(`${address}:${port}`);
          const verdict = { agrees: true, differsAt: undefined, message: 'm', milliseconds: 1 };
          return Promise.resolve({ packet: { outcome: 'connected', ...verdict }, seen: undefined });
        },
      },
    );
    const check = async (to: string): Promise<string> => {
      const { status, text } = await askAsPage(checked.port, 'POST', '/data/trace', {
        from: 'outside',
        to,
        check: true,
      });
      return `${status} ${textAt(parseRecord(text), 'reason')}`;
    };
    // Whatever it finds, it may be asked again only after a second: of two at once, one is refused.
    const answers = await Promise.all(['203.0.113.200:80', '203.0.113.201:80'].map(check));
    expect(answers.toSorted()).toEqual(['409 CannotCheck', '429 TooManyRequests']);
    expect(sent).toEqual([]);
    await checked.close();
  });
});

test(
  'a tab is told that the API server does not answer, and when it does again',
  { timeout: 120_000 },
  async () => {
    let isDown = false;
    const { ConnectionError } = await import('../../src/client/transport.ts');
    const open = new Set<AbortController>();
    const broken: Transport = {
      server: server.client.server,
      request: (method, path, options) =>
        isDown
          ? Promise.reject(new ConnectionError('ECONNREFUSED', 'refused'))
          : server.client.request(method, path, options),
      stream: async (path, options) => {
        if (isDown) throw new ConnectionError('ECONNREFUSED', 'refused');
        const ending = new AbortController();
        open.add(ending);
        const signal = AbortSignal.any([
          ending.signal,
          ...(options?.signal === undefined ? [] : [options.signal]),
        ]);
        return await server.client.stream(path, { ...options, signal });
      },
      close: () => Promise.resolve(),
    };
    const other = await startPage(broken);
    const tab = new TestTab(other.port);
    await tab.follow({ view: 'map' });
    const status = (): unknown => {
      const last = tab.messages.findLast((message) => 'status' in message || 'state' in message);
      return last?.['status'] ?? recordAt(last, 'state')['status'];
    };
    await vi.waitFor(() => expect(status()).toEqual({ loading: [], forbidden: [] }), patience);
    isDown = true;
    for (const each of open) each.abort();
    await vi.waitFor(() => {
      expect(textAt(status(), 'disconnected', 'message')).toContain('nothing listens at the address');
      expect(textAt(status(), 'disconnected', 'since')).toMatch(/Z$/);
    }, patience);
    // What was there stays.
    expect(tab.rows.get('service')?.size).toBeGreaterThan(0);
    isDown = false;
    await vi.waitFor(() => expect(status()).toEqual({ loading: [], forbidden: [] }), patience);
    tab.socket.terminate();
    await other.close();
  },
);

test('bytes that are no request end their connection, and nothing else', async () => {
  for (const bytes of ['\0\0\0', 'GET /data/stream HTTP/1.1\r\nUpgrade: websocket\r\n\r\n', '\x16\x03\x01']) {
    const socket = connect(page.port, '127.0.0.1').on('error', () => undefined);
    socket.write(bytes);
    await once(socket.resume(), 'close');
  }
  expect(await askAsPage(page.port, 'GET', '/')).toMatchObject({ status: 200 });
});

function deployment(name: string): object {
  const labels = { app: name };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'nginx' }] } };
  return { metadata: { name }, spec: { replicas: 2, selector: { matchLabels: labels }, template } };
}
