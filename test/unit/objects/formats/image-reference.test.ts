import { describe, expect, it } from 'vitest';
import { parseImage } from '../../../../src/objects/formats/image-reference.ts';

const hex = 'a'.repeat(64);

describe('the name of an image', () => {
  it.each([
    ['nginx', 'docker.io/library/nginx', undefined, undefined],
    ['nginx:1.29', 'docker.io/library/nginx', '1.29', undefined],
    ['index.docker.io/library/nginx', 'docker.io/library/nginx', undefined, undefined],
    ['index.docker.io/nginx', 'docker.io/library/nginx', undefined, undefined],
    ['shop/cart_a__b--c.d', 'docker.io/shop/cart_a__b--c.d', undefined, undefined],
    ['localhost/cart', 'localhost/cart', undefined, undefined],
    ['localhost:5000/cart:V_1', 'localhost:5000/cart', 'V_1', undefined],
    ['Registry/cart', 'Registry/cart', undefined, undefined],
    ['[::1]:5000/a/b', '[::1]:5000/a/b', undefined, undefined],
    [`ghcr.io/a/b:1@sha256:${hex}`, 'ghcr.io/a/b', '1', `sha256:${hex}`],
  ])('%s', (image, repository, tag, digest) => {
    expect(parseImage(image)).toEqual({ repository, tag, digest });
  });

  // As distribution/reference v0.6.0 says them.
  const format = 'invalid reference format';
  it.each([
    ['<your-image>', format],
    ['', format],
    ['nginx:', format],
    ['nginx:-1', format],
    ['nginx:a b', format],
    ['nginx@sha256:12', format],
    ['a//b', format],
    ['a..b', format],
    ['-a/b', format],
    ['https://nginx', format],
    [`nginx:${'a'.repeat(129)}`, format],
    ['MyApp:1', `${format}: repository name (library/MyApp) must be lowercase`],
    ['ghcr.io/Shop/cart:1', `${format}: repository name (Shop/cart) must be lowercase`],
    [hex, `invalid repository name (${hex}), cannot specify 64-byte hexadecimal strings`],
    [`a.io/${'a'.repeat(256)}`, 'repository name must not be more than 255 characters'],
  ])('is not %s', (image, fault) => {
    expect(parseImage(image)).toBe(fault);
  });

  it('is found not to be one in no time', () => {
    expect(parseImage(`${'a-'.repeat(50_000)}!`)).toBe(format);
    expect(parseImage(`${'a.'.repeat(50_000)}/!`)).toBe(format);
  });
});
