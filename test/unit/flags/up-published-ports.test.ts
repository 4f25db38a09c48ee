import { expect, test } from 'vitest';
import { publishedPorts } from '../../../src/flags/up.ts';

test('ports lead to ports of Services, by number or by name', () => {
  expect(publishedPorts(['8000:shop/storefront:80', '65535:a-1/b:http-alt'])).toEqual([
    { port: 8000, namespace: 'shop', service: 'storefront', servicePort: '80' },
    { port: 65535, namespace: 'a-1', service: 'b', servicePort: 'http-alt' },
  ]);
  expect(publishedPorts(undefined)).toEqual([]);
});

test.each([
  '8000',
  '8000:storefront:80',
  '8000:shop/storefront',
  '8000:shop/storefront:',
  '0:shop/storefront:80',
  '65536:shop/storefront:80',
  'http:shop/storefront:80',
  '8000:shop/Storefront:80',
  '8000:shop/storefront:80:81',
  ' 8000:shop/storefront:80',
])('"%s" is none', (text) => {
  expect(() => publishedPorts([text])).toThrow(`"${text}" must be like 8000:shop/storefront:80`);
});
