import { expect, test } from 'vitest';
import { program } from '../../../src/commands/command-line/program.ts';
import { runConfig } from '../../../src/flags/run.ts';

/** What the flags of a command line mean. */
function read(args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  const command = program().commands.find((one) => one.name() === 'run');
  if (command === undefined) throw new Error('there is no command run');
  command.parseOptions([...args]);
  return runConfig(command.opts(), ['curl', 'http://web'], environment);
}

test.each([
  [[], { kind: 'client', namespace: 'default' }],
  [['-n', 'shop'], { kind: 'client', namespace: 'shop' }],
  [['--pod', 'web-1'], { kind: 'pod', namespace: 'default', name: 'web-1' }],
  [['-n', 'shop', '--pod', 'web-1'], { kind: 'pod', namespace: 'shop', name: 'web-1' }],
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

test.each([
  [['--kubeconfig', '/a'], { KUBECONFIG: '/b' }, /^\/a$/],
  [[], { KUBECONFIG: '/b:/c' }, /^\/b$/],
  [[], { KUBECONFIG: '' }, /\/\.servicenet\/kubeconfig$/],
  [[], {}, /\/\.servicenet\/kubeconfig$/],
])('with %j and %j, the kubeconfig is %s', (args, environment, path) => {
  expect(read(args, environment).kubeconfigPath).toMatch(path);
});
