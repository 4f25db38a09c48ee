import { expect, it } from 'vitest';
import { ignoredAnnotations } from '../../../../src/network/http/ingress.ts';

const saidOf = (...names: string[]) =>
  ignoredAnnotations({ metadata: { annotations: Object.fromEntries(names.map((name) => [name, 'x'])) } });
const nginx = (name: string) => `nginx.ingress.kubernetes.io/${name}`;

it('names the annotations of ingress-nginx, and no others', () => {
  expect(ignoredAnnotations({ metadata: {} })).toBeUndefined();
  expect(saidOf('servicenet.dev/ssl-redirect', 'cert-manager.io/issuer')).toBeUndefined();
  expect(saidOf(nginx('rewrite-target'), 'a', nginx('auth-url'))).toBe(
    'these annotations have no effect: nginx.ingress.kubernetes.io/auth-url, nginx.ingress.kubernetes.io/rewrite-target',
  );
});

it('fits into an Event', () => {
  const said =
    saidOf(...Array.from({ length: 40 }, (_, i) => nginx(`a-name-as-long-as-the-longest-${i}`))) ?? '';
  expect(said).toMatch(/ and 30 more$/);
  expect(said.length).toBeLessThan(1024);
});
