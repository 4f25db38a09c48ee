import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { insideKubeconfigPath, wordsAt } from '../../../src/emulation/calls.ts';

const enter = ['nsenter', '--target', '7', '--net'];

test('the words lead into the first namespaces, then into that of the place', () => {
  const words = wordsAt(enter, { namespace: 'node-1' }, '/');
  expect(words.slice(3, 8)).toEqual([...enter, '--']);
  expect(words).toContain('--net=/run/netns/node-1');
  expect(words, 'the resolv.conf of the machine').not.toContain('--mount');
});

test('a place with a resolv.conf has a mount namespace of its own', () => {
  const words = wordsAt(enter, { namespace: 'pod-1', resolvConf: '/run/resolv.conf-1' }, '/');
  expect(words.indexOf('unshare')).toBeGreaterThan(words.indexOf('--net=/run/netns/pod-1'));
  expect(words).toContain('/run/resolv.conf-1');
});

test('a program gets its words as they are, its folder and its kubeconfig', () => {
  const words = wordsAt(enter, { namespace: 'node-1' }, '/usr/bin');
  // What comes behind the namespaces runs anywhere.
  const [program = '', ...args] = words.slice(words.lastIndexOf('--') + 1);
  const script = 'pwd; echo "$KUBECONFIG"; printf "%s|" "$@"';
  const given = ['a b', '$HOME', "it's", '', '--flag=x'];
  const { stdout, stderr } = spawnSync(program, [...args, 'sh', '-c', script, 'sh', ...given], {
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  expect(stdout).toBe(`/usr/bin\n${insideKubeconfigPath}\n${given.join('|')}|`);
});
