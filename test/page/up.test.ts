import { spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { listAt, recordAt, textAt } from '../../src/objects/json.ts';
import { missingFor } from '../network/support/gate.ts';
import { end, UpHome } from '../network/support/up-process.ts';
import { chromiumPath, Visitor } from './support/browser.ts';

const missing = chromiumPath === undefined ? 'chromium' : missingFor('root');
const patience = { timeout: 60_000, interval: 200 };

describe.skipIf(missing !== '')(
  `the page of servicenet up${missing === '' ? '' : ` (missing: ${missing})`}`,
  () => {
    let home: UpHome;
    let up: ChildProcess;
    let visitor: Visitor;
    let link: string;
    let page: Page;

    beforeAll(async () => {
      home = new UpHome('root');
      up = await home.start(['--apply', 'deploy/examples/quickstart.yaml', '--page', '0']);
      link = home.servicenet('page').stdout.trim();
      visitor = await Visitor.launch();
    });
    afterAll(async () => {
      await visitor.close();
      await end(up, 'SIGTERM');
      home.remove();
    });
    beforeEach(async () => {
      page = await (await visitor.context({ viewport: { width: 1280, height: 900 } })).newPage();
      await page.goto(link);
      await page.locator('.map-row').first().waitFor();
    });
    afterEach(async () => {
      await visitor.closeContexts();
      expect(visitor.faults()).toEqual([]);
    });

    const origin = (): string => new URL(link).origin;
    const kubectl = (args: readonly string[], input = ''): string => {
      const { stdout, stderr, status } = spawnSync('kubectl', args, {
        encoding: 'utf8',
        env: home.environment,
        input,
      });
      if (status !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
      return stdout;
    };
    const json = (...args: readonly string[]): unknown => JSON.parse(kubectl([...args, '-o', 'json']));
    const row = (key: string) =>
      page.locator('.map-row', { has: page.locator(`a[href*="sel=service/${key}"]`) });
    const go = async (place: string): Promise<void> => {
      await page.goto(`${origin()}${place}`);
    };

    test('its link opens the Map, once for all tabs of a browser, and for no other', async () => {
      expect(link).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#k=[\w-]{22}$/);
      expect(page.url()).not.toContain('k=');
      const services = listAt(json('get', 'services', '-A'), 'items');
      await expect.poll(() => page.locator('.map-row').count(), patience).toBe(services.length);
      await page.reload();
      await page.locator('.map-row').first().waitFor();
      const tab = await page.context().newPage();
      await tab.goto(`${origin()}/events`);
      await tab.locator('.events tbody tr').first().waitFor();
      const stranger = await (await visitor.context()).newPage();
      await stranger.goto(`${origin()}/map`);
      await stranger.getByText('This page opens with a link').waitFor();
      expect(await stranger.locator('.map-row').count()).toBe(0);
    });

    test('its rows follow the cluster, and its problems come and go', async () => {
      kubectl(['-n', 'shop', 'scale', 'deployment', 'cart', '--replicas=4']);
      await expect.poll(() => row('shop/cart').locator('.member').count(), patience).toBe(4);
      // Nothing is left on a drained node, and the Service has as many Pods elsewhere.
      const drained = page.locator('.node', { hasText: 'node-1' });
      const flags = ['--ignore-daemonsets', '--delete-emptydir-data', '--force', '--timeout=60s'];
      kubectl(['drain', 'node-1', ...flags]);
      await drained.getByText('cordoned').waitFor();
      const pods = row('shop/cart').locator('.member');
      await expect.poll(() => pods.locator('[title="on node-1"]').count(), patience).toBe(0);
      await expect.poll(() => pods.locator('.state.good').count(), patience).toBe(4);
      expect(await pods.count()).toBe(4);
      kubectl(['uncordon', 'node-1']);
      await expect.poll(() => page.getByText('cordoned').count(), patience).toBe(0);

      kubectl(['-n', 'shop', 'annotate', 'pods', '-l', 'app=catalog', 'servicenet.dev/readiness=false']);
      await row('shop/catalog').getByText('PodsNotReady').waitFor();
      await page.keyboard.press('p');
      await page.locator('.problems li', { hasText: 'shop/catalog' }).getByText('PodsNotReady').waitFor();
      await page.keyboard.press('Escape');
      await go('/service/shop/catalog');
      await page.locator('.why .unmet').waitFor();
      // The page says what the command says.
      const trace = home.servicenet('trace', 'deploy/shop/cart', 'svc/shop/catalog:80', '-o', 'json').stdout;
      const said = (await page.locator('.why .unmet bdi').textContent()) ?? '';
      expect(said.length).toBeGreaterThan(10);
      expect(trace).toContain(said);
      kubectl(['-n', 'shop', 'annotate', 'pods', '-l', 'app=catalog', 'servicenet.dev/readiness-']);
      await expect.poll(() => page.locator('.why').count(), patience).toBe(0);
      await page.locator('.problem-count').getByText('no').waitFor();
    });

    test('the way from a Pod is that of a real packet, and ends where a policy ends it', async () => {
      await row('shop/cart').locator('.pod-name').first().click();
      await page.getByRole('complementary', { name: 'details' }).waitFor();
      await page.keyboard.press('t');
      await expect.poll(() => new URL(page.url()).pathname).toBe('/way');
      expect(await page.getByRole('combobox', { name: 'from', exact: true }).inputValue()).toBe(
        'deployment/shop/cart',
      );
      await page.getByRole('combobox', { name: 'to', exact: true }).fill('svc/shop/catalog:80');
      await page.getByRole('button', { name: 'Send a real one' }).click();
      await page.getByText('real packet connected').waitFor();
      await page.locator('.result.good').waitFor();

      const policy = {
        ...{
          apiVersion: 'networking.k8s.io/v1',
          kind: 'NetworkPolicy',
          metadata: { name: 'catalog', namespace: 'shop' },
        },
        spec: {
          podSelector: { matchLabels: { app: 'catalog' } },
          ingress: [
            { from: [{ podSelector: { matchLabels: { app: 'storefront' } } }], ports: [{ port: 'http' }] },
          ],
        },
      };
      kubectl(['apply', '-f', '-'], JSON.stringify(policy));
      await expect
        .poll(async () => {
          await page.getByRole('button', { name: 'Trace', exact: true }).click();
          return page
            .locator('.stage.deny')
            .textContent({ timeout: 5000 })
            .catch(() => '');
        }, patience)
        .toContain('NetworkPolicy shop/catalog');
      await page.locator('.field-lines').getByText('app: storefront').waitFor();
      await expect
        .poll(async () => {
          await page.getByRole('button', { name: 'Send a real one' }).click();
          return page
            .locator('.packet')
            .textContent({ timeout: 10_000 })
            .catch(() => '');
        }, patience)
        .toContain('dropped');
      kubectl(['-n', 'shop', 'delete', 'networkpolicy', 'catalog']);
    });

    test('an edit of a pool is planned as the command plans it, and nothing is written', async () => {
      await go('/addresses?edit=default');
      const field = page.getByRole('textbox', { name: 'The pool as it shall be' });
      await expect.poll(() => field.inputValue(), patience).toContain('kind: AddressPool');
      const before = textAt(json('get', 'addresspool', 'default'), 'metadata', 'resourceVersion');
      const pool = recordAt(json('get', 'addresspool', 'default'));
      const held = listAt(
        json('-n', 'shop', 'get', 'service', 'storefront'),
        'status',
        'loadBalancer',
        'ingress',
      ).map((each) => textAt(each, 'ip'));
      const edited = JSON.stringify({
        ...{ apiVersion: pool['apiVersion'], kind: 'AddressPool', metadata: { name: 'default' } },
        spec: { ...recordAt(pool, 'spec'), addresses: ['203.0.113.128/26'] },
      });
      await field.fill(edited);
      await page.getByRole('button', { name: 'Plan', exact: true }).click();
      await page.locator('.moves').waitFor();
      const cells = await page.locator('.pool-edit tbody td').allTextContents();
      const shown = Array.from({ length: cells.length / 5 }, (_, index) =>
        cells.slice(5 * index, 5 * index + 5),
      );
      const planned = spawnSync('sh', ['-c', `cat > pool.json`], { cwd: home.folder, input: edited });
      expect(planned.status).toBe(0);
      const answer: unknown = JSON.parse(
        home.servicenet('pools', 'plan', '-f', 'pool.json', '-o', 'json').stdout,
      );
      const effects = listAt(answer, 'effects').map((effect) => [
        ...[textAt(effect, 'service'), textAt(effect, 'family')],
        ...[textAt(effect, 'effect'), textAt(effect, 'from') || '–', textAt(effect, 'to') || '–'],
      ]);
      expect(
        shown.map((cells) => cells.map((cell, index) => (index === 2 ? /\w+/.exec(cell)?.[0] : cell))),
      ).toEqual(effects);
      expect(effects.map(([, , , from]) => from)).toContain(held[0]);
      expect(textAt(json('get', 'addresspool', 'default'), 'metadata', 'resourceVersion')).toBe(before);
    });

    test('a Service that waits for an address says why', async () => {
      const service = {
        ...{
          apiVersion: 'v1',
          kind: 'Service',
          metadata: { name: 'waits', namespace: 'shop', annotations: { 'servicenet.dev/pool': 'none' } },
        },
        spec: { type: 'LoadBalancer', selector: { app: 'cart' }, ports: [{ port: 80 }] },
      };
      kubectl(['apply', '-f', '-'], JSON.stringify(service));
      await go('/addresses');
      const waiting = page.locator('.waiting-services li', { hasText: 'shop/waits' });
      await waiting.waitFor();
      const reason = (await waiting.locator('.reason').textContent()) ?? '';
      const conditions = listAt(json('-n', 'shop', 'get', 'service', 'waits'), 'status', 'conditions');
      expect(conditions.map((condition) => textAt(condition, 'reason'))).toContain(reason);
      await waiting.locator('.reason').click();
      await page.getByRole('dialog', { name: reason }).getByText('What to do').waitFor();
      kubectl(['-n', 'shop', 'delete', 'service', 'waits']);
      await expect.poll(() => waiting.count(), patience).toBe(0);
    });

    test('what has ended is said, and a new link leads to the same place', async () => {
      visitor.expected.push(
        /WebSocket connection .* failed/,
        /ERR_CONNECTION_REFUSED/,
        /401 \(Unauthorized\)/,
      );
      await go('/events?show=warnings');
      await page.getByLabel('only warnings').waitFor();
      await end(up, 'SIGTERM');
      await page.getByRole('alert').getByText('servicenet up does not answer').waitFor();
      const { port } = new URL(link);
      up = await home.start(['--apply', 'deploy/examples/quickstart.yaml', '--page', port]);
      await page.getByText('This page opens with a link').waitFor();
      link = home.servicenet('page').stdout.trim();
      await page.goto(link.replace('/#', '/events?show=warnings#'));
      await page.getByLabel('only warnings').waitFor();
      expect(page.url()).toBe(`${origin()}/events?show=warnings`);
    });
  },
);
