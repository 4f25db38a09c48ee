import { expect, test } from 'vitest';
import { routerConfig } from '../../../src/flags/router.ts';
import { givenFlags } from '../../support/command-line.ts';

/** What the flags of a command line mean. */
const read = (...args: string[]) => routerConfig(givenFlags('router', args));

test('the defaults need no root and answer this machine alone', () => {
  expect(read()).toMatchObject({
    ...{ addresses: ['127.0.0.1'], httpPort: 8080, httpsPort: 8443, ingressClass: 'servicenet' },
    ...{ withoutClass: false, routes: true, wildcards: false, ownership: true, accessLog: false },
    ...{
      forwardedPolicy: 'replace',
      connectTimeoutMs: 5000,
      backendTimeoutMs: 60_000,
      drainTimeoutMs: 30_000,
    },
    metrics: { host: '127.0.0.1', port: 9154 },
  });
});

test('what turns parts on and off', () => {
  const flags = ['--no-routes', '--allow-wildcard-routes', '--disable-namespace-ownership-check'];
  expect(read(...flags)).toMatchObject({ routes: false, wildcards: true, ownership: false });
  expect(read('--allowed-domains', 'A.test., b.test').allowedDomains).toEqual(['a.test', 'b.test']);
});

test.each([
  ['--default-certificate', 'tls', '--default-certificate'],
  ['--publish-service', 'a/b/c', '--publish-service'],
  ['--router-domain', 'no_dns', '--router-domain'],
  ['--http-port', '0', '--http-port'],
  ['--backend-timeout', 'soon', '--backend-timeout'],
])('%s %s is refused', (flag, value, named) => {
  expect(() => read(flag, value)).toThrow(named);
});
