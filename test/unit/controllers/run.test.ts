import { describe, expect, it } from 'vitest';
import type { Transport } from '../../../src/client/transport.ts';
import { controllersBesideACluster } from '../../../src/platforms/catalog.ts';
import { selectControllers } from '../../../src/controllers/run.ts';

const known = [
  { name: 'a', onByDefault: true },
  { name: 'b', onByDefault: true },
  { name: 'c', onByDefault: false },
];

describe('selectControllers', () => {
  it.each([
    [[], []],
    [['*'], ['a', 'b']],
    [
      ['*', 'c'],
      ['a', 'b', 'c'],
    ],
    [['*', '-a'], ['b']],
    [['-a', '*'], ['b']],
    [
      ['c', 'a'],
      ['a', 'c'],
    ],
    [['-a'], []],
    [['a', '-a'], []],
    [[' a '], ['a']],
  ])('%j: %j', (choice, expected) => {
    expect(selectControllers(choice, known)).toEqual(expected);
  });

  it.each([['x'], ['-x'], ['']])('refuses %j', (item) => {
    expect(() => selectControllers([item], known)).toThrow(
      `"${item}" is not in the list of known controllers: a, b, c`,
    );
  });

  it('chooses for a cluster the controllers that it lacks, and others only by name', () => {
    const nowhere = new Error('nothing is asked before a controller starts');
    const transport: Transport = {
      server: 'http://127.0.0.1',
      request: () => Promise.reject(nowhere),
      stream: () => Promise.reject(nowhere),
      close: () => Promise.resolve(),
    };
    const nodePorts = { first: 30_000, last: 32_767 };
    const catalog = controllersBesideACluster({ transport, allocation: 'server', nodePorts }, { transport });
    const usual = ['service-allocation-controller', 'load-balancer-controller'];
    expect(selectControllers(['*'], catalog).toSorted()).toEqual(usual.toSorted());
    expect(selectControllers(['*', '-load-balancer-controller', 'endpoints-controller'], catalog)).toEqual([
      'service-allocation-controller',
      'endpoints-controller',
    ]);
  });
});
