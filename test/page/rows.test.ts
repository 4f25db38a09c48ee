import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pixelmatch from 'pixelmatch';
import type { Page } from 'playwright-core';
import { PNG } from 'pngjs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { PodState } from '../../src/view/rows/rows.ts';
import { chromiumPath, Visitor, widths } from './support/browser.ts';
import { builtPage, screenshots } from './support/built-page.ts';
import { exampleNow, exampleRows, type ExampleService, exampleTrace, putExample } from './support/example.ts';
import { StandIn } from './support/stand-in.ts';

/** Numbers that are the same in each run. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const podStates: readonly PodState[] = [
  'ready',
  'ready',
  'ready',
  'not ready',
  'starting',
  'terminating',
  'failed',
];

/** A Service of a random shape. */
function randomService(random: (below: number) => number, name: string): ExampleService {
  const pods = Array.from({ length: random(9) }, () => podStates[random(podStates.length)] ?? 'ready');
  const isBad = pods.length > 0 && !pods.includes('ready');
  return {
    ...{ name, clusterIP: `10.96.${random(250)}.${random(250)}`, pods },
    ...{ type: ['ClusterIP', 'NodePort', 'LoadBalancer'][random(3)] ?? 'ClusterIP' },
    service: isBad ? { trouble: { reason: 'PodsNotReady', message: 'none of them is ready' } } : {},
  };
}

function put(server: StandIn, service: ExampleService): void {
  const { service: row, slice, pods } = exampleRows(service);
  server.put('service', [row]);
  server.put('slice', [slice]);
  server.put('pod', pods);
}

describe.skipIf(chromiumPath === undefined)('rows in a browser', () => {
  let visitor: Visitor;
  let server: StandIn;

  beforeAll(async () => {
    visitor = await Visitor.launch();
  });
  afterAll(() => visitor.close());
  beforeEach(async () => {
    server = new StandIn(builtPage);
    await server.listen();
  });
  afterEach(async () => {
    await visitor.closeContexts();
    await server.close();
    expect(visitor.faults()).toEqual([]);
  });

  const tabOf = async (place: string, width = 1280): Promise<Page> => {
    const context = await visitor.context({ viewport: { width, height: 860 } });
    const page = await context.newPage();
    await page.clock.setFixedTime(new Date(exampleNow));
    await page.goto(server.link(place));
    await page.locator('main > *').first().waitFor();
    return page;
  };

  test('of hostile names stay in their boxes, and are text', async () => {
    putExample(server);
    const names = [
      'a'.repeat(253),
      `${'long-'.repeat(12)}name`,
      '😀'.repeat(60),
      '\u202egnihtyreve\u202c \u2067turned',
      'مرحبا-بالعالم-'.repeat(8),
      '<script>window.owned = true</script><img src=x onerror="window.owned = true">',
      '[31mred\u001b[31m\u0007',
    ];
    for (const [index, name] of names.entries()) {
      put(server, {
        ...{ name, clusterIP: `fd00:10:96:1234:5678:9abc:def0:${index}`, pods: ['ready', 'not ready'] },
        ports: Array.from({ length: 100 }, (_, port) => `${8000 + port}:${30_000 + port}/TCP`).join(','),
        service: {
          trouble: { reason: 'PodsNotReady', message: `${name} ${'and so on '.repeat(40)}` },
          labels: { [name]: name },
        },
      });
    }
    const events = names.map((name, index) => ({
      ...{
        key: `shop/${index}`,
        time: exampleNow,
        count: 1,
        warning: true,
        reason: 'Unhealthy',
        source: 'kubelet',
      },
      ...{ message: `${name}\nsecond line`, about: { kind: 'Pod', namespace: 'shop', name } },
    }));
    server.put('event', events);
    server.put(
      'problem',
      names.map((name) => ({
        ...{ key: name, reason: 'PodsNotReady', message: name, since: exampleNow },
        about: { kind: 'Service', namespace: 'shop', name },
      })),
    );
    const workloads = names.map((name) => ({ name: `deployment/shop/${name}`, count: 1 }));
    const decider = {
      verdict: 'denied',
      object: `NetworkPolicy shop/${names[0] ?? ''}`,
      field: 'spec.ingress',
    } as const;
    const ends = { from: `pod/shop/${names[1] ?? ''}`, to: `pod/shop/${names[1] ?? ''}:80` };
    const cell = {
      verdict: 'denied',
      deciders: [{ ...decider, ...ends, message: names.join(' ') }],
    } as const;
    server.reach = {
      ...{ namespace: 'shop', protocol: 'TCP', sources: workloads },
      destinations: workloads.map((workload) => ({ ...workload, port: 8080 })),
      cells: workloads.map(() => workloads.map(() => cell)),
      total: { sources: names.length, destinations: names.length },
    };
    for (const width of widths) {
      const page = await tabOf('/map', width);
      const places = [
        '/map',
        '/map?table=1',
        '/events',
        `/service/shop/${encodeURIComponent(names[1] ?? '')}`,
        '/addresses',
        '/http',
        '/reach?ns=shop',
        '/reach?ns=shop&table=1',
      ];
      for (const place of [...places, `/map?sel=service/shop/${encodeURIComponent(names[0] ?? '')}`]) {
        await page.goto(`${server.address}${place}`);
        await page.locator('main > *').first().waitFor();
        await page.getByText('live', { exact: true }).waitFor({ state: 'attached' });
        expect(await page.evaluate<string[]>(spills), `${place} at ${width}`).toEqual([]);
        expect(
          await page.evaluate(`document.documentElement.scrollWidth - document.documentElement.clientWidth`),
        ).toBeLessThanOrEqual(0);
        expect(
          await page.evaluate(`/[\\u202a-\\u202e\\u2066-\\u2069\\u001b]/.test(document.body.innerText)`),
        ).toBe(false);
      }
      await page.screenshot({ path: join(screenshots, `hostile-${width}.png`) });
      expect(await page.evaluate(`window.owned`)).toBeUndefined();
    }
  });

  test('after a thousand changes look as they do in a fresh tab', async () => {
    const random = randomOf(7);
    putExample(server);
    const live = await tabOf('/map');
    await live.locator('.map-row').first().waitFor();
    for (let change = 0; change < 1000; change++) {
      const name = `service-${random(25)}`;
      if (random(4) > 0) put(server, randomService(random, name));
      else {
        server.remove('service', `shop/${name}`);
        server.remove('slice', `shop/${name}-x7k2p`);
      }
      if (change % 250 === 0) await live.evaluate(`scrollTo(0, ${random(900)})`);
    }
    const last = { name: 'the-last', clusterIP: '10.96.0.99', pods: ['ready'] as const };
    put(server, last);
    await live.goto(`${server.address}/map?q=the-last`);
    await live.getByText('the-last').first().waitFor();
    for (const place of ['/map', '/map?show=problems', '/events', '/addresses', '/http']) {
      // The live tab goes by its own links: it is not loaded again.
      await live.evaluate(
        `history.pushState(undefined, '', ${JSON.stringify(place)}); dispatchEvent(new PopStateEvent('popstate')); scrollTo(0, 0)`,
      );
      const fresh = await tabOf(place);
      const [a, b] = [await picture(live), await picture(fresh)];
      const { width, height } = a;
      expect([b.width, b.height]).toEqual([width, height]);
      const difference = new PNG({ width, height });
      const count = pixelmatch(a.data, b.data, difference.data, width, height, { threshold: 0 });
      if (count > 0) writeFileSync(join(screenshots, 'difference.png'), PNG.sync.write(difference));
      expect(count, place).toBe(0);
      await fresh.context().close();
    }
  });

  test('of a Map that is taken along say what the Map says, as files that can be drawn', async () => {
    putExample(server);
    server.trace = exampleTrace;
    for (const [place, content] of [
      ...([
        ['/map', '.map-row'],
        ['/way?from=deployment/shop/cart&to=svc/shop/catalog:80', '.ladder'],
      ] as const),
    ]) {
      const page = await tabOf(place);
      await page.locator(content).first().waitFor();
      const files: string[] = [];
      for (const name of ['SVG', 'PNG, 2×', 'Mermaid', 'DOT']) {
        if ((await page.locator('.export[open]').count()) === 0) await page.getByText('Export').click();
        const download = page.waitForEvent('download');
        await page.getByRole('button', { name, exact: true }).click();
        const file = join(screenshots, (await download).suggestedFilename());
        await (await download).saveAs(file);
        files.push(file);
        expect(statSync(file).size).toBeGreaterThan(300);
      }
      const [svg = ''] = files;
      // A browser that draws the file finds no fault in it, and each text has its place.
      const drawn = await (await visitor.context()).newPage();
      await drawn.goto(`${server.address}/`);
      await drawn.goto('about:blank');
      await drawn.setContent(readFileSync(svg, 'utf8'));
      expect(await drawn.evaluate<string[]>(svgSpills)).toEqual([]);
    }
  });

  /** Saves the picture of what is shown, and draws it in a tab of its own. */
  const takenAlong = async (page: Page): Promise<{ texts: readonly string[]; page: Page }> => {
    await page.getByText('Export').click();
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'SVG', exact: true }).click();
    const svg = readFileSync(await (await download).path(), 'utf8');
    const drawn = await (await visitor.context()).newPage();
    await drawn.setContent(svg);
    return { texts: await drawn.locator('svg text').allTextContents(), page: drawn };
  };

  test('that are shown are those that are taken along', async () => {
    putExample(server);
    server.trace = exampleTrace;
    for (const place of ['/map', '/map?show=problems', '/map?q=app%3Dcart', '/map?type=LoadBalancer']) {
      const page = await tabOf(place);
      await page.locator('.map-row').first().waitFor();
      // Counts of Pods become Pods; the picture has them all.
      for (const fold of await page.locator('button.fold[aria-expanded=false]').all()) await fold.click();
      const shown = {
        services: await page.locator('.map-row .title').allTextContents(),
        ready: await page.locator('.map-row .ready').allTextContents(),
        pods: await Promise.all(
          (await page.locator('.pod-name').all()).map(async (each) => await each.getAttribute('title')),
        ),
        states: await page.locator('.member .state').allTextContents(),
        addresses: await page.locator('.member .address').allTextContents(),
        reasons: await page.locator('.map-row .reason').allTextContents(),
      };
      const { texts } = await takenAlong(page);
      const within = (texts: readonly string[], pattern: RegExp): readonly string[] =>
        texts.flatMap((text) => pattern.exec(text)?.[1] ?? []);
      const sorted = (all: readonly string[]): readonly string[] => all.toSorted();
      expect(sorted(within(texts, /^(\S+\/\S+) {2}\d+\/\d+$/))).toEqual(sorted(shown.services));
      expect(sorted(within(texts, /^\S+\/\S+ {2}(\d+\/\d+)$/))).toEqual(
        sorted(within(shown.ready, /^(\d+\/\d+)/)),
      );
      for (const reason of shown.reasons) expect(texts).toContain(reason);
      const members = shown.pods.map((_, index) => [shown.addresses[index], shown.states[index]].join('  '));
      for (const member of members) expect(texts).toContain(member);
      for (const pod of shown.pods)
        expect(texts.filter((text) => text.endsWith(`/${pod ?? ''}`))).toHaveLength(1);
      const pods = texts.filter((text) => /^[^/ ]+\/[^/ ]+$/.test(text));
      expect(new Set(shown.pods).size).toBe(pods.length);
      await page.context().close();
    }
    const page = await tabOf('/way?from=deployment/shop/cart&to=svc/shop/catalog:80');
    await page.locator('.ladder').waitFor();
    const { texts } = await takenAlong(page);
    const said = texts.join('\n');
    // As trace prints them, pictures leave out what a connection passes without a decision.
    const parts = ['.ladder .at', '.ladder .stage:not(.pass) .reasoning', '.ladder .sent strong'];
    for (const part of parts) {
      for (const text of await page.locator(part).allTextContents()) {
        for (const word of text.split(' ').filter((each) => each !== '')) expect(said).toContain(word);
      }
    }
    expect(await page.locator('.ladder .at').count()).toBeGreaterThan(2);
  });

  test('by the thousand cost few elements, and the page few bytes', async () => {
    const all = Array.from({ length: 1000 }, (_, index) =>
      exampleRows({
        name: `service-${index}`,
        clusterIP: '10.96.1.1',
        pods: Array<PodState>(5).fill('ready'),
      }),
    );
    server.put(
      'service',
      all.map(({ service }) => service),
    );
    server.put(
      'slice',
      all.map(({ slice }) => slice),
    );
    server.put(
      'pod',
      all.flatMap(({ pods }) => pods),
    );
    const page = await tabOf('/map');
    await page.locator('.map-row').first().waitFor();
    await page.getByText('1,000 Services').waitFor();
    const elements = async (): Promise<number> =>
      page.evaluate<number>(`document.querySelectorAll('*').length`);
    expect(await elements()).toBeLessThanOrEqual(3000);
    await page.evaluate(`scrollTo(0, document.body.scrollHeight / 2)`);
    await page.getByText('service-5', { exact: false }).first().waitFor();
    expect(await elements()).toBeLessThanOrEqual(3000);
    await page.goto(`${server.address}/map?table=1`);
    await page.locator('tbody tr').nth(5).waitFor();
    expect(await elements()).toBeLessThanOrEqual(3000);
    expect(await page.locator('table').getAttribute('aria-rowcount')).toBe('1001');
    // Each column has room for its words, and rows are as tall as they are taken to be: the last one is at the end.
    const widths = await page.evaluate<number[]>(
      `[...document.querySelectorAll('th')].map((e) => e.getBoundingClientRect().width)`,
    );
    expect(Math.min(...widths)).toBeGreaterThan(60);
    await expect
      .poll(
        async () => {
          await page.evaluate(`scrollTo(0, document.body.scrollHeight)`);
          return await page.locator('tbody tr:not(.space)').last().textContent();
        },
        { timeout: 60_000 },
      )
      .toContain('service-999');

    // Many Pods are asked for by namespace.
    server.put('namespace', [
      { key: 'shop', name: 'shop', services: 1000, pods: 5000 },
      { key: 'empty', name: 'empty', services: 0, pods: 0 },
    ]);
    await page.goto(`${server.address}/map`);
    await page.getByText('5,000 Pods in 2 namespaces: choose one').waitFor();
    await page.getByRole('link', { name: 'shop', exact: true }).click();
    await page.locator('.map-row').first().waitFor();
    expect(page.url()).toBe(`${server.address}/map?ns=shop`);

    const bytesOf = (ending: string): number => {
      const name = readdirSync(builtPage).find((file) => file.endsWith(ending)) ?? '';
      return statSync(join(builtPage, name)).size;
    };
    expect(bytesOf('.js.gz')).toBeLessThanOrEqual(60 * 1024);
    expect(bytesOf('.css.gz')).toBeLessThanOrEqual(8 * 1024);
  });

  test('keep their places while somebody points at them', async () => {
    putExample(server);
    const page = await tabOf('/map');
    await page.locator('.map-row').first().waitFor();
    const names = (): Promise<string[]> => page.locator('.map-row .title').allTextContents();
    const before = await names();
    await page.locator('.map-row').nth(2).hover();
    put(server, {
      ...{ name: 'aaa', clusterIP: '10.96.3.3', pods: ['not ready'] },
      service: { trouble: { reason: 'PodsNotReady', message: 'none of them is ready' } },
    });
    await page.getByText(/shows (it|them)/).waitFor();
    expect(await names()).toEqual(before);
    await page.keyboard.press('.');
    await expect.poll(async () => (await names())[0]).toBe('shop/aaa');
  });
});

async function picture(page: Page): Promise<PNG> {
  await page.mouse.move(0, 0);
  await page.getByText('live', { exact: true }).waitFor({ state: 'attached' });
  await page.locator('main[aria-busy=false]').waitFor();
  return PNG.sync.read(await page.screenshot({ animations: 'disabled' }));
}

/** Elements with a text of their own that is drawn beyond what clips or holds it, and boxes of rows over each other. */
const spills = `(() => {
  const found = [];
  const shown = (e) => e.getClientRects().length > 0 && !e.closest('.hidden, [hidden], svg');
  for (const box of document.querySelectorAll('.service-cell, .members-cell, .member, td, .node, .details, .place, .pool, .problems li, .tab, .toolbar, .service-head')) {
    if (!shown(box)) continue;
    const outer = box.getBoundingClientRect();
    for (const inner of box.querySelectorAll('bdi, button, a, p, span')) {
      if (!shown(inner) || getComputedStyle(inner).position === 'absolute') continue;
      let clipped = inner.parentElement;
      while (clipped !== box && getComputedStyle(clipped).overflow === 'visible') clipped = clipped.parentElement;
      if (clipped !== box || getComputedStyle(box).overflow !== 'visible') continue;
      const rect = inner.getBoundingClientRect();
      if (rect.right > outer.right + 1 || rect.left < outer.left - 1) found.push(box.className + ': ' + inner.outerHTML.slice(0, 120));
    }
  }
  const rows = [...document.querySelectorAll('.map-row')].map((e) => e.getBoundingClientRect());
  rows.forEach((row, i) => { if (i > 0 && rows[i - 1].bottom > row.top + 1) found.push('rows over each other'); });
  for (const row of document.querySelectorAll('.map-row')) {
    const bottom = row.getBoundingClientRect().bottom;
    for (const line of row.querySelectorAll('p, button')) if (shown(line) && line.getBoundingClientRect().bottom > bottom + 1) found.push('a line below its row');
  }
  return found;
})()`;

/** Texts of an SVG that are drawn beyond their boxes, or over others. */
const svgSpills = `(() => {
  const [width, height] = [document.querySelector('svg').width.baseVal.value, document.querySelector('svg').height.baseVal.value];
  const boxes = [...document.querySelectorAll('rect')].map((rect) => rect.getBBox());
  const found = [];
  for (const text of document.querySelectorAll('text')) {
    const box = text.getBBox();
    if (box.x + box.width > width || box.y + box.height > height) found.push('beyond the picture: ' + text.textContent);
    const own = boxes.find((rect) => rect.x <= box.x && box.x < rect.x + rect.width && rect.y <= box.y && box.y < rect.y + rect.height);
    if (own !== undefined && box.x + box.width > own.x + own.width + 1) found.push('beyond its box: ' + text.textContent);
  }
  return found;
})()`;
