import { beforeEach, describe, expect, it } from 'vitest';
import { MissingNames } from '../../../../src/network/flows/names.ts';

const client = '10.244.0.5';
const search = ['shop.svc.cluster.local', 'svc.cluster.local', 'cluster.local'];

describe('names that do not exist', () => {
  let told: string[] = [];
  let names: MissingNames;
  beforeEach(() => {
    told = [];
    names = new MissingNames({
      domain: 'cluster.local',
      namespaceOf: (address) => (address === client ? 'shop' : undefined),
      tell: (name, by) => told.push(`${by} ${name}`),
    });
  });

  /** Answers what a resolver asks for a name, one candidate after the other in both families. */
  function ask(candidates: readonly string[], exists: (name: string) => boolean): void {
    for (const candidate of candidates) {
      names.answered(client, candidate, exists(candidate), 0);
      names.answered(client, candidate, exists(candidate), 0);
      if (exists(candidate)) return;
    }
  }

  it.each(['catalog.shopp', 'catalogg', 'example.com', 'nothing.shop.svc.cluster.local'])(
    'are said once, as they were meant: %s',
    (name) => {
      ask([...search.map((domain) => `${name}.${domain}`), name], () => false);
      names.tick(500);
      expect(told).toEqual([]);
      names.tick(1000);
      names.tick(9000);
      expect(told).toEqual([`${client} ${name}`]);
    },
  );

  it.each(['catalog', 'catalog.shop', 'catalog.shop.svc', 'catalog.shop.svc.cluster.local'])(
    'are not those that exist in a domain of the search list: %s',
    (name) => {
      ask(
        [...search.map((domain) => `${name}.${domain}`), name],
        (each) => each === 'catalog.shop.svc.cluster.local',
      );
      names.tick(9000);
      expect(told).toEqual([]);
    },
  );

  it('are those of each client', () => {
    names.answered(client, 'a.shop.svc.cluster.local', false, 0);
    names.answered('10.0.0.9', 'a.shop.svc.cluster.local', true, 0);
    names.tick(1000);
    expect(told).toEqual([`${client} a`]);
  });

  it('are said at once where there are too many', () => {
    for (let i = 0; i <= 1000; i++) names.answered(client, `x${i}.test`, false, 0);
    expect(told).toEqual([`${client} x0.test`]);
  });
});
