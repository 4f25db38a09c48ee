import { expect, test } from 'vitest';
import { readAnnotations } from '../../../../../src/network/gateway/import/annotations.ts';
import { ImportedRules, type ReadIngress } from '../../../../../src/network/gateway/import/rules.ts';
import type { HTTPIngressPath } from '../../../../../src/objects/types/networking.generated.ts';

const backend = { service: { name: 'web', port: { number: 80 } } };

function read(
  name: string,
  host: string,
  paths: readonly (readonly [string, string])[],
  notes: string[],
): ReadIngress {
  const found = paths.map(([path, pathType]): HTTPIngressPath => ({ path, pathType, backend }));
  const note = (sentence: string): void => void notes.push(`${name}: ${sentence}`);
  return {
    ...{ key: `shop/${name}`, namespace: 'shop', name, note },
    object: { metadata: { name, namespace: 'shop' }, spec: { defaultBackend: backend }, status: {} },
    settings: readAnnotations({}, note),
    hosts: new Map([[host, found]]),
  };
}

/** The matches of the rules. */
function matches(rules: ReturnType<ImportedRules['rules']>): string[] {
  return rules.flatMap((rule) =>
    (rule.matches ?? []).map(({ path }) => `${path?.type ?? ''} ${path?.value ?? ''}`),
  );
}

test('of equal matches of a host the first Ingress has it, and a default backend is behind all', () => {
  const notes: string[] = [];
  const rules = new ImportedRules(new Map(), true);
  const older = read(
    'a',
    'x',
    [
      ['/a/', 'Prefix'],
      ['/a', 'Exact'],
    ],
    notes,
  );
  const younger = read(
    'b',
    'x',
    [
      ['/a', 'Prefix'],
      ['/', 'ImplementationSpecific'],
    ],
    notes,
  );
  const elsewhere = read('c', 'y', [['/a', 'Prefix']], notes);
  expect(
    [older, younger, elsewhere].map((one) => matches(rules.rules(one, [...one.hosts.keys()].join()))),
  ).toEqual([['PathPrefix /a/', 'Exact /a'], ['PathPrefix /'], ['PathPrefix /a']]);
  expect(matches(rules.defaultRules(older, 'x'))).toEqual([]);
  expect(matches(rules.defaultRules(younger, 'x'))).toEqual([]);
  expect(matches(rules.defaultRules(elsewhere, 'y'))).toEqual(['PathPrefix /']);
  expect(notes.filter((note) => !note.includes('the Service web'))).toEqual([
    'b: x/a not imported: shop/a has it, too, and is older',
    'a: defaultBackend not imported for x: shop/b has it',
  ]);
});
