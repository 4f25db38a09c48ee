import { expect, test } from 'vitest';
import { commandsLine, hintsFor } from '../../../src/commands/up.ts';

const config = { kubeconfigPath: "/home/o'neil/.servicenet/kubeconfig", nodes: 3 };
const shop = { applied: ['service/storefront'] };

test('commands fit into 80 columns, and name this program as it is found', () => {
  const { paragraphs } = hintsFor(config, shop, true, 'npm run -s servicenet --');
  expect(paragraphs.flat().filter((line) => line.length > 80)).toEqual([]);
  expect(paragraphs.flat()).toContain(
    '  npm run -s servicenet -- run -- curl -s http://storefront.shop/hostname',
  );
  // zsh takes no comments from its prompt.
  expect(paragraphs.flat().join('\n')).not.toContain('#');
});

test('the line of export is one for a shell', () => {
  const { exportLine } = hintsFor(config, shop, true, 'servicenet');
  expect(exportLine).toBe(String.raw`export KUBECONFIG='/home/o'\''neil/.servicenet/kubeconfig'`);
});

test('what is not there is not offered: packets without a network, workloads without nodes', () => {
  for (const [applied, hasNetwork] of [
    [shop.applied, false],
    [[], true],
  ] as const) {
    const { paragraphs } = hintsFor(config, { applied }, hasNetwork, 'servicenet');
    expect(paragraphs.flat().join('\n')).not.toContain('storefront');
  }
  const { paragraphs } = hintsFor({ ...config, nodes: 0 }, shop, false, 'servicenet');
  expect(paragraphs.flat().join('\n')).not.toContain('create deployment');
});

test('one line says whether commands of containers run, and why not', () => {
  const line = (containers: 'auto' | 'off' | 'processes', commandsObstacle = ''): string =>
    commandsLine({ containers }, { commandsObstacle });
  expect(line('auto')).toContain('see no other file');
  expect(line('processes')).toContain('read what you can read');
  expect(line('auto', 'no overlay')).toBe('commands of containers: built-in ones alone (no overlay)');
  expect(line('off')).toBe('commands of containers: built-in ones alone (--containers=off)');
});
