import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { colourOf, inHtml, podPage, prefersHtml } from '../../../../src/emulation/stand-ins/page.ts';

describe('the page of a Pod', () => {
  it.for([
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', true],
    ['TEXT/HTML', true],
    ['application/xhtml+xml', true],
    ['*/*', false],
    ['', false],
    [undefined, false],
    ['application/json', false],
    ['application/json, text/html;q=0.5', false],
    ['application/json;q=0.4, text/html ; q=0.5', true],
    ['text/html;q=0', false],
    ['text/html;q=what', false],
  ] as const)('is wanted by %s: %s', ([accept, wanted]) => {
    expect(prefersHtml(accept)).toBe(wanted);
  });

  const content = {
    ...{ pod: 'web-7d9f-x2x4z', namespace: 'shop', node: 'node-1', image: 'nginx:1.29' },
    addresses: ['10.244.1.5', 'fd00:10:244:1::5'],
    ...{ method: 'GET', path: '/cart', client: '10.244.0.9:4242' },
    headers: { host: 'shop.example', 'x-forwarded-for': '192.0.2.7', cookie: 'secret=1' },
  };

  it('says who answers and how the request came, and has no script', () => {
    const page = podPage(content);
    expect(page).toContain('<h1>web-7d9f-x2x4z</h1>');
    for (const text of ['node-1', '10.244.1.5, fd00:10:244:1::5', '10.244.0.9:4242', '192.0.2.7']) {
      expect(page).toContain(text);
    }
    expect(page).toContain('<th>Host</th><td>shop.example</td>');
    expect(page).toContain('<a href="">Reload</a>');
    expect(page).not.toContain('<script');
    expect(page, 'only headers of the way').not.toContain('secret');
  });

  it('escapes what a client sends', () => {
    const hostile = '"><script>alert(1)</script>';
    const page = podPage({ ...content, path: hostile, headers: { host: hostile, 'x-real-ip': hostile } });
    expect(page).not.toContain('<script');
    expect(page.split('&quot;&gt;&lt;script&gt;')).toHaveLength(4);
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(inHtml(text)).not.toMatch(/[<>"']/);
      }),
    );
  });

  it('has a colour that white text can be read on, and that differs between the Pods of a ReplicaSet', () => {
    const names = ['x2x4z', 'x2x5z', 'k8qtr', 'b6mvd', 'zzk9p'].map((end) => `web-7d9f-${end}`);
    expect(new Set(names.map(colourOf)).size).toBe(names.length);
    fc.assert(
      fc.property(fc.string(), (name) => {
        const [, lightness] = /^hsl\(\d{1,3}, \d\d%, (\d\d)%\)$/.exec(colourOf(name)) ?? [];
        expect(Number(lightness)).toBeLessThanOrEqual(36);
      }),
    );
  });
});
