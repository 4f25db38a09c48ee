import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { parseRecord, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { askAsPage, startPage, type TestPage, TestTab } from '../support/page.ts';
import { call } from '../support/test-server.ts';

/** The cluster as it was, by the stream and by what the page asks. */

const patience = { timeout: 60_000, interval: 50 };

let server: TestServer;
let page: TestPage;
let tab: TestTab;
beforeAll(async () => {
  server = await startApiServer({ nodes: 2 });
  page = await startPage(server.client);
  await make('/api/v1/namespaces', { metadata: { name: 'shop' } });
  for (const name of ['web', 'cart']) {
    const labels = { app: name };
    const template = {
      metadata: { labels },
      spec: { containers: [{ name: 'web', image: 'web', ports: [{ containerPort: 8080 }] }] },
    };
    await make('/apis/apps/v1/namespaces/shop/deployments', {
      metadata: { name },
      spec: { replicas: 1, selector: { matchLabels: labels }, template },
    });
  }
  await make('/api/v1/namespaces/shop/services', {
    metadata: { name: 'web' },
    spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 8080 }] },
  });
  tab = new TestTab(page.port);
  await tab.follow({ view: 'map', namespace: 'shop' });
  await vi.waitFor(() => {
    expect(tab.row('service', 'shop/web')).toMatchObject({ endpoints: { ready: 1 } });
    expect(textAt(tab.row('journal', 'journal'), 'knownSince')).not.toBe('');
  }, patience);
}, 120_000);
afterAll(async () => {
  await page.close();
  await server.stop();
});

async function make(path: string, body: unknown): Promise<void> {
  const { status } = await call(server.client, 'POST', path, { body });
  expect(status).toBe(201);
}

async function answerOf(method: string, path: string, body?: unknown): Promise<unknown> {
  const answer = await askAsPage(page.port, method, path, body);
  return { status: answer.status, ...parseRecord(answer.text) };
}

/** When the newest change was heard of; when the journal began, where there was none. */
async function lastChange(): Promise<string> {
  const { changes, knownSince } = recordAt(await answerOf('GET', '/data/journal?most=1'));
  return textAt(Array.isArray(changes) ? changes[0] : undefined, 'time') || String(knownSince);
}

const question = { from: 'deploy/shop/cart', to: 'svc/shop/web:80' };

describe('the cluster as it was', { timeout: 120_000 }, () => {
  test('is told as a state, and does not change; the way and reach are those of then', async () => {
    const before = await lastChange();
    await make('/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies', {
      metadata: { name: 'web-in' },
      spec: { podSelector: { matchLabels: { app: 'web' } }, policyTypes: ['Ingress'] },
    });
    await call(server.client, 'DELETE', '/api/v1/namespaces/shop/services/web');
    await vi.waitFor(() => expect(tab.row('service', 'shop/web')).toBeUndefined(), patience);
    const past = new TestTab(page.port);
    await past.follow({ view: 'map', namespace: 'shop', at: before });
    await vi.waitFor(() => expect(past.row('service', 'shop/web')).toBeDefined(), patience);
    expect(past.messages[0]).toMatchObject({ state: { follow: { at: before }, status: { loading: [] } } });
    expect(past.row('service', 'shop/web')).toMatchObject({ endpoints: { ready: 1, total: 1 } });
    expect(await answerOf('GET', `/data/state?view=map&namespace=shop&at=${before}`)).toMatchObject({
      rows: { service: [{ key: 'shop/web' }] },
    });
    expect(await answerOf('POST', '/data/trace', question)).toMatchObject({ status: 400 });
    expect(await answerOf('POST', '/data/trace', { ...question, at: before })).toMatchObject({
      ...{ status: 200, reachable: true },
    });
    const reach = '/data/reach?namespace=shop&from=deployment/shop/cart&to=deployment/shop/web';
    const cells = async (more: string): Promise<string> =>
      JSON.stringify(recordAt(await answerOf('GET', `${reach}${more}`)));
    expect(await cells('')).toContain('web-in');
    expect(await cells(`&at=${before}`)).not.toContain('web-in');
    // What happens now is not of then.
    const told = past.messages.length;
    await make('/api/v1/namespaces/shop/services', {
      ...{ metadata: { name: 'later' }, spec: { ports: [{ port: 80 }] } },
    });
    await vi.waitFor(() => expect(tab.row('service', 'shop/later')).toBeDefined(), patience);
    await vi.waitFor(() => expect(past.messages.length).toBeGreaterThan(told), patience);
    expect(past.row('service', 'shop/later')).toBeUndefined();
    past.say({ follow: { view: 'map', namespace: 'shop' } });
    await vi.waitFor(() => expect(past.row('service', 'shop/later')).toBeDefined(), patience);
    expect(past.row('service', 'shop/web')).toBeUndefined();
    past.socket.close();
  });

  test('has changes, newest first up to a time, oldest first after one', async () => {
    const before = await lastChange();
    await make('/api/v1/namespaces/shop/configmaps', { metadata: { name: 'not-watched' } });
    const services = '/api/v1/namespaces/shop/services';
    await make(services, { metadata: { name: 'short' }, spec: { ports: [{ port: 80 }] } });
    await vi.waitFor(() => expect(tab.row('service', 'shop/short')).toBeDefined(), patience);
    await call(server.client, 'DELETE', `${services}/short`);
    await vi.waitFor(() => expect(tab.row('service', 'shop/short')).toBeUndefined(), patience);
    const short = { kind: 'Service', namespace: 'shop', name: 'short' };
    const [added, deleted] = ['added', 'deleted'].map((change) => ({ ...short, change }));
    const answer = await answerOf('GET', `/data/journal?from=${before}`);
    const { changes } = recordAt(answer);
    const ofShort = (Array.isArray(changes) ? changes : []).filter(
      (each) => textAt(each, 'name') === 'short',
    );
    expect(ofShort).toMatchObject([added, deleted]);
    expect(await answerOf('GET', '/data/journal?most=1')).toMatchObject({ status: 200, changes: [{}] });
    const newest = recordAt(await answerOf('GET', '/data/journal'))['changes'];
    const times = (Array.isArray(newest) ? newest : []).map((each) => textAt(each, 'time'));
    expect(times).toEqual(times.toSorted().toReversed());
    expect(JSON.stringify(newest)).not.toContain('not-watched');
  });

  test('is not known of before somebody looked; no packet is sent into it', async () => {
    const at = '2020-01-01T00:00:00Z';
    const past = new TestTab(page.port);
    await past.follow({ view: 'map', namespace: 'shop', at });
    await vi.waitFor(() => expect(past.messages.length).toBeGreaterThan(0), patience);
    const { status, rows } = recordAt(past.messages[0]?.['state']);
    expect(textAt(status, 'knownSince')).toMatch(/^20/);
    expect(recordAt(rows)['service']).toEqual([]);
    past.socket.close();
    const refused = await answerOf('POST', '/data/trace', { ...question, at });
    expect(refused).toMatchObject({ status: 400 });
    expect(textAt(refused, 'message')).toContain('is not known');
    const now = new Date().toISOString();
    expect(await answerOf('POST', '/data/trace', { ...question, at: now, check: true })).toMatchObject({
      ...{ status: 409, reason: 'CannotCheck' },
    });
    for (const wrong of ['yesterday', '2026-13-01T00:00:00Z', '']) {
      const asked = await answerOf('POST', '/data/trace', { ...question, at: wrong });
      expect(asked).toMatchObject({ status: 400, reason: 'BadRequest' });
    }
  });
});
