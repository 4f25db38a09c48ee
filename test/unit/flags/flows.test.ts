import { expect, test } from 'vitest';
import { flowsConfig } from '../../../src/flags/flows.ts';
import { givenFlags } from '../../support/command-line.ts';

function read(args: readonly string[], environment?: string) {
  return flowsConfig(givenFlags('flows', args), { environment, default: '/home/me/.servicenet/kubeconfig' });
}

test('flags are read', () => {
  expect(read([])).toMatchObject({ last: 200, follow: false, output: 'table', all: false });
  expect(read(['--outcome', 'dropped,refused', '-f', '--to', 'svc/web', '--last', '5'])).toMatchObject({
    ...{ outcomes: ['dropped', 'refused'], follow: true, to: 'svc/web', last: 5 },
    kubeconfigPath: '/home/me/.servicenet/kubeconfig',
  });
  expect(read(['--kubeconfig', '/a'], '/b').kubeconfigPath).toBe('/a');
  expect(read([], '/b:/c').kubeconfigPath).toBe('/b');
});

test('a cluster is named as with other commands, and a service account for its agents', () => {
  expect(read(['--context', 'production', '--service-account', 'shop/on-call'])).toMatchObject({
    cluster: { kind: 'kubeconfig', context: 'production' },
    serviceAccount: { namespace: 'shop', name: 'on-call' },
    agentsNamespace: 'servicenet-system',
  });
});

test('--expect says from where, to where and what', () => {
  const expect1 = read(['--expect', 'deploy/shop/cart svc/shop/web:80 connected', '--timeout', '2s']);
  expect(expect1).toMatchObject({
    ...{
      from: 'deploy/shop/cart',
      to: 'svc/shop/web:80',
      outcomes: ['connected'],
      all: true,
      timeoutMs: 2000,
    },
  });
});

test.each([
  [['--from', 'a/b/c/d'], /^--from: "a\/b\/c\/d" is no place/],
  [['--to', 'svc/web:http'], /^--to: /],
  [['--outcome', 'lost'], /^--outcome: /],
  [['--by', 'pod/shop/web'], /^--by: "pod\/shop\/web" is no object that decides about flows: give KIND/],
  [['--by', 'deny-in'], /^--by: /],
  [['--expect', 'cart web connected', '--by', 'netpol/deny-in'], /^--expect says all/],
  [['--last', '10001'], /^--last: /],
  [['--service-account', 'viewer'], /^--service-account: must be a namespace and a name/],
  [['--service-account', 'shop/a/b'], /^--service-account: must be/],
  [['--server', 'https://10.0.0.1:6443', '--context', 'a'], /^--server cannot be used with/],
  [['--expect', 'cart web'], /^--expect: give 'FROM TO OUTCOME'/],
  [['--expect', 'cart web gone'], /^--expect: give/],
  [['--expect', 'cart web connected now'], /^--expect: give/],
  [['--expect', 'cart a/b/c/d connected'], /^--expect: "a\/b\/c\/d" is no place/],
  [['--expect', 'cart web connected', '--from', 'cart'], /^--expect says all/],
  [['--expect', 'cart web connected', '-f'], /^--expect says all/],
  [['--groups', '-f'], /^--groups says what is known/],
])('%j is refused', (args, message) => {
  expect(() => read(args)).toThrow(message);
});
