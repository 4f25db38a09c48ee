import { expect, test } from 'vitest';
import { planListeners } from '../../../../src/network/gateway/listeners.ts';
import { Policies } from '../../../../src/network/gateway/policies.ts';
import { References } from '../../../../src/network/gateway/references.ts';
import { parentId, RoutePlanner, sortStreams } from '../../../../src/network/gateway/routes.ts';
import { gateway, httpRoute, objectsOf, streamRoute, toGateway, words } from './objects.ts';

function newPlanner(texts: readonly string[]): {
  planner: RoutePlanner;
  listeners: ReturnType<typeof planListeners>['own'];
} {
  const references = new References(objectsOf({}));
  const { own } = planListeners(gateway(texts), [], references);
  const parents = new Map([[parentId('Gateway', 'shop', 'web'), { listeners: own, refused: undefined }]]);
  return {
    planner: new RoutePlanner(parents, references, new Policies(references, undefined)),
    listeners: own,
  };
}

test('a Route adds to each listener that it reaches, once', () => {
  const { planner, listeners } = newPlanner(['http 80', 'http 81 b.test', 'tcp 82']);
  const parents = [toGateway(), toGateway({ port: 80 }), toGateway({ port: 82 })];
  const planned = planner.add(httpRoute('shop/r', { parents, hostnames: ['a.test', 'b.test'] }));
  planner.add(httpRoute('shop/s', { hostnames: ['c.test'] }));
  expect(planned.map(({ conditions }) => words(conditions))).toEqual([
    'Accepted ResolvedRefs',
    'Accepted ResolvedRefs',
    '!Accepted=NotAllowedByListeners ResolvedRefs',
  ]);
  const added = listeners.map((listener) => {
    const { routes, matches } = planner.attached(listener);
    return [routes, [...matches.keys()].join(' ')];
  });
  expect(added).toEqual([
    [2, 'a.test b.test c.test'],
    [1, 'b.test'],
    [0, ''],
  ]);
});

test('a Route with valid and invalid rules is accepted, and told', () => {
  const { planner, listeners } = newPlanner(['http 80']);
  const rules = [{}, { filters: [{ type: 'Other' }] }];
  const [planned] = planner.add(httpRoute('shop/r', { rules }));
  expect(words(planned?.conditions)).toBe('Accepted ResolvedRefs PartiallyInvalid=UnsupportedValue');
  expect(planned?.conditions[2]?.message).toMatch(/^Dropped Rule.*rules\[1\]: filters of type Other/);
  const matches = listeners.flatMap((listener) => planner.attached(listener).matches.get('') ?? []);
  expect(matches.map(({ rule: { filters } }) => filters.unsupported === undefined)).toEqual([true, false]);

  const parents = [toGateway({ sectionName: 'x' })];
  const [refused] = planner.add(httpRoute('shop/s', { rules, parents }));
  expect(words(refused?.conditions)).toBe('!Accepted=NoMatchingParent ResolvedRefs');
});

test('a Route says nothing of other parents', () => {
  const { planner } = newPlanner(['http 80']);
  const others = [
    { name: 'web', kind: 'Gateway', group: 'x.y' },
    { name: 'other' },
    { name: 'web', kind: 'ListenerSet' },
  ];
  expect(planner.add(httpRoute('shop/r', { parents: others }))).toEqual([]);
  expect(planner.add(httpRoute('shop/r', { parents: [{ name: 'web' }] }))).toHaveLength(1);
});

test('streams are tried by hostname, then by age and name', () => {
  const { planner, listeners } = newPlanner(['tls/Passthrough 443']);
  const routes = [
    streamRoute('TLSRoute', 'shop/b', { hostnames: ['*.test', '*.a.test'], age: 1 }),
    streamRoute('TLSRoute', 'shop/a', { hostnames: ['*.test'], age: 1 }),
    streamRoute('TLSRoute', 'shop/old', { hostnames: ['*.test', 'x.a.test'] }),
  ];
  for (const route of routes) planner.add(route);
  const streams = listeners.flatMap((listener) => planner.attached(listener).streams);
  expect(sortStreams(streams).map(({ hostname, source }) => `${source.name} ${hostname}`)).toEqual([
    'old x.a.test',
    'b *.a.test',
    'old *.test',
    'a *.test',
    'b *.test',
  ]);
});
