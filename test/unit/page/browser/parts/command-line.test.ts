import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { commandLine, kubectlLine } from '../../../../../src/page/browser/parts/command-line.ts';

test('a shell reads the words that were meant, whatever they hold', () => {
  const sign = fc.constantFrom(
    ...['a', ' ', "'", '"', '$', '`', '\\', '\n', '*', '~', ';', '&', '|', '!', '#', 'é'],
  );
  const words = fc.array(fc.string({ unit: sign }), { minLength: 1 });
  const lists = fc.sample(words, { numRuns: 100, seed: 7 });
  const script = lists.map((list) => `printf '%s\\0' ${commandLine(...list)}; printf '\\1'`).join('\n');
  const read = execFileSync('sh', ['-c', script], { encoding: 'utf8' }).split('\u0001').slice(0, -1);
  expect(read.map((text) => text.split('\0').slice(0, -1))).toEqual(lists);
  expect(commandLine('servicenet', 'trace', 'deploy/shop/cart', 'svc/shop/web:80')).toBe(
    'servicenet trace deploy/shop/cart svc/shop/web:80',
  );
});

test('a command of kubectl asks the cluster of the page', () => {
  const flags = ['--kubeconfig', '/home/me/my config', '--context', 'prod'];
  expect(kubectlLine({ clusterFlags: flags }, 'get', 'pods')).toBe(
    "kubectl --kubeconfig '/home/me/my config' --context prod get pods",
  );
  expect(kubectlLine({ clusterFlags: ['--server', 'https://a', '--token-file', 't'] }, 'get', 'pods')).toBe(
    'kubectl get pods',
  );
});
