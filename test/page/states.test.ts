import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { accessibilityFaults, chromiumPath, schemes, Visitor, widths } from './support/browser.ts';
import { builtPage, screenshots } from './support/built-page.ts';
import { exampleDenial, exampleNow, examplePool, exampleTrace, putExample } from './support/example.ts';
import { StandIn } from './support/stand-in.ts';

/** Views with content, and what has to be there before one looks. */
const views = {
  map: ['/map', '.map-row'],
  'map-details': ['/map?sel=service/shop/pay', 'aside.details'],
  'map-table': ['/map?table=1', 'table'],
  'map-past': ['/map?at=2026-11-27T20:41:05Z', '.time-bar.past'],
  service: ['/service/shop/pay', '.service-head'],
  'service-balanced': ['/service/shop/storefront', '.service-head'],
  'way-form': ['/way', '.examples'],
  way: ['/way?from=deployment/shop/cart&to=svc/shop/catalog:80', '.ladder'],
  'way-denied': ['/way?from=deployment/shop/cart&to=svc/shop/catalog:443', '.field-lines'],
  'way-table': ['/way?from=deployment/shop/cart&to=svc/shop/catalog:80&table=1', '.answer table'],
  'reach-choice': ['/reach', '.examples'],
  reach: ['/reach?ns=shop&sel=nodes%20deployment/shop/catalog:8080', '.reach .cell, .reach td'],
  'reach-table': ['/reach?ns=shop&table=1', '.reach tbody tr'],
  'reach-plan': ['/reach?ns=shop&plan=1', '.reach tbody tr'],
  flows: ['/flows', '.flow-rows tbody tr'],
  'flows-each': ['/flows?each=1&outcome=dropped', '.flow-rows tbody tr'],
  addresses: ['/addresses', '.pool'],
  'addresses-edit': ['/addresses?pool=default&edit=default', 'textarea'],
  http: ['/http', '.http-rules tbody tr'],
  events: ['/events', '.events tbody tr'],
} as const;

/** Two dozen looks of axe-core, on a machine that does other things. */
const lookMs = 600_000;

describe.skipIf(chromiumPath === undefined)('every view', () => {
  let visitor: Visitor;
  let server: StandIn;

  beforeAll(async () => {
    visitor = await Visitor.launch();
    mkdirSync(screenshots, { recursive: true });
  });
  afterAll(() => visitor.close());
  beforeEach(async () => {
    server = new StandIn(builtPage);
    await server.listen();
    putExample(server);
  });
  afterEach(async () => {
    await visitor.closeContexts();
    await server.close();
    expect(visitor.faults()).toEqual([]);
  });

  const tabOf = async (width: number): Promise<Page> => {
    const context = await visitor.context({ viewport: { width, height: 860 } });
    const page = await context.newPage();
    await page.clock.setFixedTime(new Date(exampleNow));
    await page.goto(server.link('/map'));
    await page.locator('.map-row').first().waitFor();
    return page;
  };
  /** In both colour schemes: keeps a picture, and looks for faults; what a colour does not change is looked at once. */
  const looks = async (page: Page, name: string): Promise<void> => {
    const { width } = page.viewportSize() ?? { width: 0 };
    // What is scrolled under the header has no size to hit.
    await page.evaluate('scrollTo(0, 0)');
    for (const colorScheme of schemes) {
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: join(screenshots, `${name}-${colorScheme}-${width}.png`) });
      const rules = colorScheme === 'light' ? undefined : ['color-contrast'];
      expect(await accessibilityFaults(page, rules), `${name} at ${width}, ${colorScheme}`).toEqual([]);
    }
    // Nothing has to be moved sideways to be read.
    const overflow = `[...document.querySelectorAll('html, .table')].filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.className)`;
    expect(await page.evaluate(overflow), `${name} at ${width}`).toEqual([]);
  };

  describe.each(widths)('at %d pixels', (width) => {
    test(
      'is accessible in both colour schemes, and fits',
      async () => {
        const page = await tabOf(width);
        for (const [name, [place, content]] of Object.entries(views)) {
          server.trace = name === 'way-denied' ? exampleDenial : exampleTrace;
          server.yaml = name === 'addresses-edit' ? examplePool : server.policy;
          await page.goto(`${server.address}${place}`);
          await page.locator(content).first().waitFor();
          if (name === 'addresses') {
            await page.getByText('net1').first().waitFor();
            await page.getByText('ConnectionRefused').first().waitFor();
          }
          if (name === 'addresses-edit') {
            await page.getByRole('button', { name: 'Plan', exact: true }).click();
            await page.locator('.moves').waitFor();
          }
          if (name === 'reach-plan') {
            await page.getByRole('button', { name: 'Plan', exact: true }).click();
            await page.locator('.planned').waitFor();
          }
          await looks(page, name);
        }
        await page.keyboard.press('p');
        await page.locator('.problems li').first().waitFor();
        await looks(page, 'problems');
        await page.keyboard.press('?');
        await page.locator('dialog').waitFor();
        await looks(page, 'keys');
      },
      lookMs,
    );

    test(
      'says that it is empty, loading or cut off',
      async () => {
        const page = await tabOf(width);
        server.clear();
        server.put('flowWatch', [{ key: 'flows', state: 'watching', total: 0 }]);
        for (const view of ['map', 'way', 'flows', 'addresses', 'http', 'events']) {
          await page.goto(`${server.address}/${view}`);
          await page.locator('.empty').first().waitFor();
          await looks(page, `empty-${view}`);
        }
        server.reach = { ...server.reach, sources: [], destinations: [], cells: [] };
        await page.goto(`${server.address}/reach?ns=shop`);
        await page.getByText('nobody to compare').waitFor();
        await looks(page, 'empty-reach');
        await page.goto(`${server.address}/service/shop/nothing`);
        await page.getByText('There is no Service shop/nothing.').waitFor();
        await looks(page, 'empty-service');

        const places = [
          'map',
          'service/shop/pay',
          'reach?ns=shop',
          'way',
          'flows',
          'addresses',
          'http',
          'events',
        ];
        const nameOf = (place: string): string => /^\w+/.exec(place)?.[0] ?? '';
        server.tellStatus({
          loading: [{ kind: 'Pod', read: 2500, total: 5000 }],
          forbidden: ['NetworkPolicy'],
        });
        for (const place of places) {
          await page.goto(`${server.address}/${place}`);
          await page.getByText('Loading Pods 2,500 of 5,000').waitFor();
          await page.getByText('NetworkPolicy').waitFor();
          await looks(page, `loading-${nameOf(place)}`);
        }

        putExample(server);
        const message = 'the API server at 127.0.0.1:6443 does not answer (ECONNREFUSED)';
        server.tellStatus({ loading: [], forbidden: [], disconnected: { message, since: exampleNow } });
        for (const place of places) {
          await page.goto(`${server.address}/${place}`);
          await page.getByText(message).waitFor();
          await page.locator('main.stale .view').waitFor();
          await looks(page, `disconnected-${nameOf(place)}`);
        }
        await page.goto(`${server.address}/map`);
        await page.locator('.map-row').nth(3).waitFor();
      },
      lookMs,
    );
  });

  test('without a session says how to get one, and keeps its place', async () => {
    const page = await (await visitor.context()).newPage();
    await page.goto(`${server.address}/events?show=warnings`);
    await page.getByText('servicenet page').waitFor();
    await looks(page, 'no-session');
    // The link is pasted into this tab.
    await page.goto(server.link('/events?show=warnings'));
    await page.locator('.events tbody tr').first().waitFor();
    expect(page.url()).toBe(`${server.address}/events?show=warnings`);
    expect(await page.getByLabel('only warnings').isChecked()).toBe(true);
  });

  test('is there again by itself after its server was, with nothing twice', async () => {
    const page = await (await visitor.context()).newPage();
    visitor.expected.push(/WebSocket connection .* failed/, /ERR_CONNECTION_(?:REFUSED|RESET)/);
    await page.goto(server.link('/map'));
    await page.locator('.map-row').first().waitFor();
    const before = await page.locator('.map-row .title').allTextContents();
    await server.close();
    await page.getByRole('alert').getByText('does not answer').waitFor();
    expect(await page.locator('.map-row .title').allTextContents()).toEqual(before);
    await server.listen();
    await page.getByText('live', { exact: true }).waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
    expect(await page.locator('.map-row .title').allTextContents()).toEqual(before);
  });

  test('is reached, read and left by keys alone', async () => {
    const page = await (await visitor.context({ viewport: { width: 1280, height: 860 } })).newPage();
    await page.goto(server.link('/map'));
    await page.locator('.map-row').first().waitFor();
    for (const [key, path] of [
      ...([
        ['a', '/addresses'],
        ['h', '/http'],
        ['e', '/events'],
        ['r', '/reach'],
        ['f', '/flows'],
        ['w', '/way'],
        ['m', '/map'],
      ] as const),
    ]) {
      await page.keyboard.press('g');
      await page.keyboard.press(key);
      await expect.poll(() => new URL(page.url()).pathname).toBe(path);
    }
    // A search, its only Service, its details, the way to it.
    await page.locator('.map-row').first().waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('app=pay');
    await expect.poll(() => page.locator('.map-row').count()).toBe(1);
    await page.keyboard.press('Escape');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.getByRole('complementary', { name: 'details' }).getByText('Why no endpoint').waitFor();
    await page.keyboard.press('t');
    await expect.poll(() => page.url()).toContain('/way?to=svc/shop/pay');
    // In a field, keys are letters.
    await page.getByRole('combobox', { name: 'from', exact: true }).focus();
    await page.keyboard.type('gm');
    expect(new URL(page.url()).pathname).toBe('/way');
    // Out of the list of choices, then out of the field.
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    await page.keyboard.press('p');
    await page.locator('.problems li').first().waitFor();
    await page.keyboard.press('Escape');
    await expect.poll(() => page.locator('.problems').count()).toBe(0);
    // They can be turned off.
    await page.keyboard.press('?');
    await page.getByLabel('single keys do something').uncheck();
    await page.keyboard.press('Escape');
    await page.keyboard.press('p');
    expect(await page.locator('.problems').count()).toBe(0);
    // Everything can be come to by Tab, and is seen to have the focus.
    await page.goto(`${server.address}/map`);
    await page.locator('.map-row').first().waitFor();
    const reached = new Set<string>();
    for (let count = 0; count < 60; count++) {
      await page.keyboard.press('Tab');
      const focused = await page.evaluate<string>(
        `(() => { const e = document.activeElement; if (e === document.body) return 'body'; const s = getComputedStyle(e); return s.outlineStyle === 'none' && e.type !== 'checkbox' ? 'unseen: ' + e.outerHTML : String(e.className || e.id || e.type); })()`,
      );
      reached.add(focused.startsWith('unseen') ? focused : (focused.split(' ')[0] ?? ''));
    }
    expect([...reached].filter((each) => each.startsWith('unseen'))).toEqual([]);
    expect([...reached]).toEqual(
      expect.arrayContaining(['brand', 'search', 'tab', 'title', 'pod-name', 'reason', 'member']),
    );
  });
});
