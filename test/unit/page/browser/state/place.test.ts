import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  formatPlace,
  parsePlace,
  type Place,
  placeOf,
  servicePlace,
  withQuery,
} from '../../../../../src/page/browser/state/place.ts';

const text = fc.string({ unit: 'grapheme', minLength: 1 });
const query = fc.dictionary(fc.stringMatching(/^[a-z]+$/), text);
const place: fc.Arbitrary<Place> = fc.oneof(
  fc.record({ view: fc.constantFrom('map', 'way', 'addresses', 'http', 'events'), query }),
  fc.record({ view: fc.constant('service'), service: fc.record({ namespace: text, name: text }), query }),
);

describe('a place of the page', () => {
  test('is what its URL says, whatever names and searches hold', () => {
    fc.assert(
      fc.property(place, (given) => {
        const url = new URL(formatPlace(given), 'http://127.0.0.1:6480');
        expect(parsePlace(url.pathname, url.search)).toEqual(given);
      }),
    );
  });

  test('is readable', () => {
    const way = {
      view: 'way',
      query: { from: 'deploy/shop/cart', to: 'svc/shop/catalog:80', check: '1' },
    } as const;
    expect(formatPlace(way)).toBe('/way?from=deploy/shop/cart&to=svc/shop/catalog:80&check=1');
    expect(formatPlace(servicePlace('shop/web', parsePlace('/', '')))).toBe('/service/shop/web');
  });

  test('that is not known is the Map', () => {
    for (const path of ['/', '/nothing', '/service/shop', '/%E0%A4%A']) {
      expect(parsePlace(path, '').view).toBe('map');
    }
  });

  test('keeps its namespace in another view, and nothing else', () => {
    const map = parsePlace('/map', '?ns=shop&q=web');
    expect(placeOf('events', map)).toEqual({ view: 'events', query: { ns: 'shop' } });
    expect(withQuery(map, { q: undefined, show: 'problems' }).query).toEqual({
      ns: 'shop',
      show: 'problems',
    });
  });
});
