import { spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { listAt, numberAt, recordAt, textAt } from '../../src/objects/json.ts';
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
      // Each node of the way has seen it, with the addresses that were planned.
      const seen = page.locator('.hop .seen');
      await seen.first().waitFor();
      expect(await page.locator('.hop .seen.differs').count()).toBe(0);
      const nodes = await page.locator('.hop', { has: page.locator('.kind', { hasText: 'node' }) }).count();
      expect(await seen.count()).toBe(nodes);
      for (const text of await seen.allTextContents()) expect(text).toMatch(/seen on node-\d: \S+ → \S+/);

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
      await page.locator('.hop .seen', { hasText: 'not seen to pass, as planned' }).waitFor();

      // What was denied is known to who comes later, with who decided; its row leads back to the way of the same ends.
      await go('/flows?outcome=dropped');
      const denied = page.locator('.flow-rows tbody tr', { hasText: 'svc/shop/catalog:80' }).first();
      await denied.getByText('NetworkPolicy shop/catalog spec.ingress').waitFor();
      await denied.getByRole('link').click();
      await page.locator('.stage.deny').getByText('NetworkPolicy shop/catalog').waitFor();
      expect(new URL(page.url()).search).toBe('?from=deploy/shop/cart&to=svc/shop/catalog:80');
      kubectl(['-n', 'shop', 'delete', 'networkpolicy', 'catalog']);
    });

    test('what was is shown: before a policy the way is reachable, and the bar leads back to now', async () => {
      const policy = {
        ...{
          apiVersion: 'networking.k8s.io/v1',
          kind: 'NetworkPolicy',
          metadata: { name: 'closed', namespace: 'shop' },
        },
        spec: { podSelector: { matchLabels: { app: 'catalog' } } },
      };
      const question = 'from=deploy/shop/cart&to=svc/shop/catalog:80';
      await go(`/way?${question}`);
      await expect
        .poll(async () => {
          await page.getByRole('button', { name: 'Trace', exact: true }).click();
          return page.locator('.result.good').count();
        }, patience)
        .toBe(1);
      kubectl(['apply', '-f', '-'], JSON.stringify(policy));
      await go('/events?kind=NetworkPolicy&q=closed');
      const change = page.locator('.events tbody tr', { hasText: 'added' });
      await change.waitFor();
      // Some seconds later it is past.
      const past = page.locator('.time-bar.past');
      await expect
        .poll(async () => {
          await change.getByRole('link', { name: /^\d+s$/ }).click();
          return past.count();
        }, patience)
        .toBe(1);
      const at = (): string => new URL(page.url()).searchParams.get('at') ?? '';
      const after = at();
      await page.keyboard.press('[');
      await expect.poll(() => at() !== '' && at() < after, patience).toBe(true);
      await expect.poll(() => change.count(), patience).toBe(0);

      await go(`/way?${question}&at=${at()}`);
      await page.locator('.result.good').waitFor();
      await page.getByText('The cluster as it was at').waitFor();
      expect(await page.getByRole('button', { name: 'Send a real one' }).isDisabled()).toBe(true);
      const links = page.getByRole('navigation', { name: 'views' });
      await links.getByRole('link', { name: 'Map', exact: true }).click();
      await page.locator('.map-row').first().waitFor();
      expect(at()).not.toBe('');
      await page.goBack();
      await page.keyboard.press(']');
      await page.locator('.stage.deny').getByText('NetworkPolicy shop/closed').waitFor();
      await page.keyboard.press('.');
      await expect.poll(at, patience).toBe('');
      expect(await past.count()).toBe(0);
      await page.locator('.stage.deny').getByText('NetworkPolicy shop/closed').waitFor();

      kubectl(['-n', 'shop', 'delete', 'networkpolicy', 'closed']);
      await go('/map?at=2020-01-01T00:00:00Z');
      await page.getByText('Nothing is known of before').waitFor();
      await page.getByRole('link', { name: 'Back to now' }).click();
      await page.locator('.map-row').first().waitFor();
    });

    test('who reaches whom is what trace says, and a plan changes what applying changes', async () => {
      const matrix = (...flags: readonly string[]): unknown =>
        JSON.parse(home.servicenet('trace', '-n', 'shop', '--matrix', '-o', 'json', ...flags).stdout);
      /** Each cell by its ends. */
      const verdictsOf = (reach: unknown): Readonly<Record<string, string>> =>
        Object.fromEntries(
          listAt(reach, 'sources').flatMap((source, row) =>
            listAt(reach, 'destinations').map((destination, column) => {
              const port = numberAt(destination, 'port');
              const to = `${textAt(destination, 'name')}${port === 0 ? '' : `:${port}`}`;
              const cells = listAt({ row: listAt(reach, 'cells')[row] }, 'row');
              return [`${textAt(source, 'name')} to ${to}`, textAt(cells[column], 'verdict')];
            }),
          ),
        );
      const came = /(?:, \d+ (?:times? dropped or refused|connections?))+ in the last 5 minutes$/;
      const seen = async (): Promise<Readonly<Record<string, string>>> => {
        const labels = await page.evaluate<string[]>(
          `[...document.querySelectorAll('.matrix .cell')].map((cell) => cell.getAttribute('aria-label'))`,
        );
        return Object.fromEntries(
          labels.map((label): readonly [string, string] => {
            const [ends = '', ...words] = label.replace(came, '').split(': ');
            return [ends, words.join(': ')];
          }),
        );
      };
      await go('/reach?ns=shop');
      await page.locator('.matrix').waitFor();
      const before = verdictsOf(matrix());
      expect(before['deployment/shop/cart to deployment/shop/catalog:8080']).toBe('open');
      await expect.poll(seen, patience).toEqual(before);
      // What came lies over what may come.
      home.servicenet('trace', 'deploy/shop/cart', 'svc/shop/catalog:80', '--check');
      const used =
        /^deployment\/shop\/cart to deployment\/shop\/catalog:8080: open, .*connections? in the last/;
      await page.getByRole('button', { name: used }).waitFor();

      const policy = JSON.stringify({
        ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' },
        metadata: { name: 'only-cart', namespace: 'shop' },
        spec: {
          podSelector: { matchLabels: { app: 'catalog' } },
          ingress: [{ from: [{ podSelector: { matchLabels: { app: 'cart' } } }] }],
        },
      });
      await page.getByRole('button', { name: 'Plan a policy' }).click();
      await page.getByRole('textbox', { name: 'NetworkPolicies as they would be' }).fill(policy);
      await page.getByRole('button', { name: 'Plan', exact: true }).click();
      await page.locator('.planned').waitFor();
      const planned = Object.entries(await seen()).flatMap(([ends, words]) => {
        const [was = '', is] = words.split(', planned');
        return is === undefined ? [] : [[ends, was] as const];
      });
      const texts = await page.locator('.planned tbody td').allTextContents();
      const after: Record<string, string> = {};
      for (let index = 0; index < texts.length; index += 5) {
        const [from = '', to = '', , is = ''] = texts.slice(index, index + 5);
        after[`${from} to ${to}`] = /\w+$/.exec(is)?.[0] ?? '';
      }
      expect(planned.map(([ends]) => ends).toSorted()).toEqual(Object.keys(after).toSorted());
      expect(kubectl(['-n', 'shop', 'get', 'networkpolicies', '-o', 'name'])).toBe('');

      kubectl(['apply', '-f', '-'], policy);
      await go('/reach?ns=shop&sel=deployment/shop/storefront%20deployment/shop/catalog:8080');
      const applied = { ...before, ...after };
      expect(verdictsOf(matrix())).toEqual(applied);
      await expect.poll(seen, patience).toEqual(applied);
      expect(after['deployment/shop/storefront to deployment/shop/catalog:8080']).toBe('denied');
      // The selection says who decides, and leads to the way.
      const decider = page.locator('.reach-selection .decider').first();
      await expect.poll(() => decider.textContent(), patience).toContain('NetworkPolicy shop/only-cart');
      await page.keyboard.press('t');
      await expect.poll(() => new URL(page.url()).pathname).toBe('/way');
      await page.locator('.stage.deny').waitFor();
      kubectl(['-n', 'shop', 'delete', 'networkpolicy', 'only-cart']);
    });

    test('flows are shown as they come, in groups and each, and collected only meanwhile', async () => {
      await go('/flows?from=deploy/shop/cart');
      await page.locator('.flow-rows, .empty').first().waitFor();
      const send = (): void => {
        const words = ['-c', 'curl -s -m 5 http://catalog/ >/dev/null; curl -s http://catalog.shopp/'];
        home.servicenet('run', '--pod', 'deploy/shop/cart', '--', 'sh', ...words);
      };
      send();
      const rows = page.locator('.flow-rows tbody tr');
      const connected = rows.filter({ hasText: 'svc/shop/catalog:80' }).filter({ hasText: 'connected' });
      await connected.first().waitFor();
      await rows.filter({ hasText: 'dns/catalog.shopp' }).getByText('NXDOMAIN').waitFor();
      // The command says what the page says.
      const words = home.servicenet('flows', '--groups', '--from', 'deploy/shop/cart', '-o', 'json').stdout;
      const groups = words.split('\n').flatMap((line): unknown[] => (line === '' ? [] : [JSON.parse(line)]));
      const texts = (await rows.allTextContents()).join('\n');
      for (const group of groups) expect(texts).toContain(textAt(group, 'to'));
      expect(groups.map((group) => textAt(group, 'decidedBy')).every((by) => texts.includes(by))).toBe(true);

      await page.getByRole('button', { name: 'Pause' }).click();
      await page.getByLabel('each by itself').check();
      await page.getByRole('button', { name: 'Pause' }).click();
      await rows.filter({ hasText: 'pod/shop/cart-' }).first().waitFor();

      // Nothing of it runs any more.
      const isCollected = (): boolean =>
        home
          .servicenet('run', '--node', 'node-1', '--', 'nft', 'list', 'tables')
          .stdout.includes('servicenet-flows');
      await expect.poll(isCollected, patience).toBe(true);
      await go('/map');
      await expect.poll(isCollected, patience).toBe(false);
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
      const reasons = (): readonly string[] =>
        listAt(json('-n', 'shop', 'get', 'service', 'waits'), 'status', 'conditions').map((condition) =>
          textAt(condition, 'reason'),
        );
      // Until the controller has looked at it, it waits for that.
      await expect.poll(reasons, patience).toHaveLength(1);
      const [reason = ''] = reasons();
      await expect.poll(() => waiting.locator('.reason').textContent(), patience).toBe(reason);
      await waiting.locator('.reason').click();
      await page.getByRole('dialog', { name: reason }).getByText('What to do').waitFor();
      kubectl(['-n', 'shop', 'delete', 'service', 'waits']);
      await expect.poll(() => waiting.count(), patience).toBe(0);
    });

    test('the rules of a Gateway are shown, and a request is tried as trace says it', async () => {
      const gateway = {
        ...{ apiVersion: 'gateway.networking.k8s.io/v1', kind: 'Gateway' },
        metadata: { name: 'web', namespace: 'shop' },
        spec: { gatewayClassName: 'servicenet', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
      };
      const route = {
        ...{ apiVersion: 'gateway.networking.k8s.io/v1', kind: 'HTTPRoute' },
        metadata: { name: 'web', namespace: 'shop' },
        spec: {
          ...{ parentRefs: [{ name: 'web' }], hostnames: ['gateway.test'] },
          rules: [
            {
              matches: [{ path: { type: 'PathPrefix', value: '/cart' }, method: 'POST' }],
              backendRefs: [{ name: 'cart', port: 80 }],
            },
          ],
        },
      };
      const objects = { apiVersion: 'v1', kind: 'List', items: [gateway, route] };
      kubectl(['apply', '-f', '-'], JSON.stringify(objects));
      await go('/http');
      const rule = page.locator('.http-rules tr', { hasText: 'gateway.test' });
      await rule.getByText('POST').waitFor();
      await rule.getByText('HTTPRoute').waitFor();
      const form = page.getByRole('form', { name: 'Try a request' });
      await form.getByLabel('scheme').selectOption('http');
      await form.getByLabel('host').fill('gateway.test');
      await form.getByLabel('path').fill('/else');
      await form.getByRole('button', { name: 'Try' }).click();
      const said = home.servicenet('trace', 'outside', 'http://gateway.test/else', '-o', 'json').stdout;
      const stages = listAt(JSON.parse(said), 'stages');
      const denied = stages.find((stage) => textAt(stage, 'stage') === 'router');
      expect(textAt(denied, 'verdict')).toBe('deny');
      await form.getByText(textAt(denied, 'message')).waitFor();
      await form.getByRole('link', { name: 'the way' }).click();
      await expect.poll(() => new URL(page.url()).pathname).toBe('/way');
      kubectl(['-n', 'shop', 'delete', 'gateway/web', 'httproute/web']);
    });

    test('what has ended is said, and a new link leads to the same place', async () => {
      visitor.expected.push(
        /WebSocket connection .* failed/,
        /ERR_CONNECTION_(?:REFUSED|RESET)/,
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
