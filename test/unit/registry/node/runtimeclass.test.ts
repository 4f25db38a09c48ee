import { expect, test } from 'vitest';
import { create, definitionOf, update } from '../decide.ts';

const kind = definitionOf('RuntimeClass');

test('a RuntimeClass keeps its handler, and its overhead and scheduling are sound', () => {
  const { stored, errors } = create(kind, { handler: 'kata', overhead: { podFixed: { cpu: '1' } } });
  expect(errors).toEqual([]);
  expect(update(kind, stored, { handler: 'runc' }).errors).toEqual([
    'handler: Invalid value: null: field is immutable',
  ]);
  const wrong = {
    handler: 'a.b',
    overhead: { podFixed: { cpu: '-1' } },
    scheduling: { nodeSelector: { 'a b': '' }, tolerations: [{ key: 'a', operator: 'Maybe' }] },
  };
  expect(create(kind, wrong).errors.map((error) => error.split(': ', 2).join(': '))).toEqual([
    'handler: Invalid value',
    'overhead.limits[cpu]: Invalid value',
    'scheduling.nodeSelector: Invalid value',
    'scheduling.tolerations[0].operator: Unsupported value',
  ]);
});
