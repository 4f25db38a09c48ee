import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { insideKubeconfigPath, argvAt } from '../../../src/emulation/protocol.ts';

const enter = ['nsenter', '--target', '7', '--net'];

test('the command line leads into the first namespaces, then into that of the location', () => {
  const argv = argvAt(enter, { namespace: 'node-1' }, '/');
  expect(argv.slice(3, 8)).toEqual([...enter, '--']);
  expect(argv).toContain('--net=/run/netns/node-1');
  expect(argv, 'the resolv.conf of the machine').not.toContain('--mount');
});

test('a location with a resolv.conf has a mount namespace of its own', () => {
  const argv = argvAt(enter, { namespace: 'pod-1', resolvConf: '/run/resolv.conf-1' }, '/');
  expect(argv.indexOf('unshare')).toBeGreaterThan(argv.indexOf('--net=/run/netns/pod-1'));
  expect(argv).toContain('/run/resolv.conf-1');
});

test('a program gets its arguments as they are, its folder and its kubeconfig', () => {
  const argv = argvAt(enter, { namespace: 'node-1' }, '/usr/bin');
  // What comes behind the namespaces runs anywhere.
  const [program = '', ...args] = argv.slice(argv.lastIndexOf('--') + 1);
  const script = 'pwd; echo "$KUBECONFIG"; printf "%s|" "$@"';
  const given = ['a b', '$HOME', "it's", '', '--flag=x'];
  const { stdout, stderr } = spawnSync(program, [...args, 'sh', '-c', script, 'sh', ...given], {
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  expect(stdout).toBe(`/usr/bin\n${insideKubeconfigPath}\n${given.join('|')}|`);
});
