import { expect, test } from 'vitest';
import { runConfig } from '../../../src/flags/run.ts';
import { givenFlags } from '../../support/command-line.ts';

/** What the flags of a command line mean. */
function read(args: readonly string[], environment?: string) {
  const kubeconfigs = { environment, default: '/home/me/.servicenet/kubeconfig' };
  return runConfig(givenFlags('run', args), ['curl', 'http://web'], kubeconfigs);
}

test.each([
  [[], { kind: 'client', namespace: 'default' }],
  [['-n', 'shop'], { kind: 'client', namespace: 'shop' }],
  [['--pod', 'web-1'], { kind: 'pod', namespace: 'default', name: 'web-1' }],
  [['-n', 'shop', '--pod', 'web-1'], { kind: 'pod', namespace: 'shop', name: 'web-1' }],
  [['--pod', 'shop/web-1'], { kind: 'pod', namespace: 'shop', name: 'web-1' }],
  [['-n', 'shop', '--pod', 'pod/web-1'], { kind: 'pod', namespace: 'shop', name: 'web-1' }],
  [['--pod', 'deploy/web'], { kind: 'workload', workload: 'Deployment', namespace: 'default', name: 'web' }],
  [['--pod', 'sts/shop/web'], { kind: 'workload', workload: 'StatefulSet', namespace: 'shop', name: 'web' }],
  [['--node', 'node-2'], { kind: 'node', name: 'node-2' }],
  [['--outside'], { kind: 'outside' }],
])('%j is a place', (args, where) => {
  expect(read(args)).toMatchObject({ where, program: ['curl', 'http://web'] });
});

test.each([
  [['--pod', 'web-1', '--node', 'node-1']],
  [['--pod', 'web-1', '--outside']],
  [['--node', 'node-1', '--outside']],
])('%j are two places', (args) => {
  expect(() => read(args)).toThrow('--pod, --node and --outside: only one of them');
});

test.each(['svc/web', 'node/node-1', 'a/b/c/d', 'pod/', ''])('--pod %j names no Pod', (pod) => {
  expect(() => read(['--pod', pod])).toThrow(/^--pod: /);
});

test.each([
  [['--kubeconfig', '/a'], '/b', '/a'],
  [[], '/b:/c', '/b'],
  [[], '', '/home/me/.servicenet/kubeconfig'],
  [[], undefined, '/home/me/.servicenet/kubeconfig'],
])('with %j and $KUBECONFIG %j, the kubeconfig is %s', (args, environment, path) => {
  expect(read(args, environment).kubeconfigPath).toBe(path);
});
