import { expect, it } from 'vitest';
import { create, definitionOf, update } from './decide.ts';

const finalizer = 'metadata.finalizers[0]';

it.each([
  ['ConfigMap', {}, [finalizer]],
  ['Lease', { spec: {} }, []],
  ['ValidatingWebhookConfiguration', {}, []],
  ['PodDisruptionBudget', { spec: {} }, []],
])('a finalizer without a domain: %s', (kind, body, fields) => {
  const metadata = { name: 'a', finalizers: ['mine'] };
  const { errors } = create(definitionOf(kind), { metadata, ...body });
  expect(errors.map((error) => error.split(': ')[0])).toEqual(fields);
});

it('the name of a PodDisruptionBudget is the request pipeline’s to check', () => {
  const budgets = definitionOf('PodDisruptionBudget');
  expect(create(budgets, { metadata: { name: 'A_b' }, spec: {} }).errors).toEqual([]);
  const old = create(budgets, { spec: {} }).stored;
  const changed = { metadata: { name: 'a', uid: 'other', labels: { '-': '' } }, spec: {} };
  expect(update(budgets, old, changed).errors).toEqual([]);
  expect(update(budgets, old, changed, 'status').errors).toEqual([]);
});

it('the metadata of a webhook configuration is checked as a new one’s in updates, too', () => {
  const configurations = definitionOf('MutatingWebhookConfiguration');
  const old = create(configurations, {}).stored;
  const { errors } = update(configurations, old, {
    metadata: { name: 'a', uid: 'other', labels: { '-': '' } },
  });
  expect(errors.map((error) => error.split(': ')[0])).toEqual(['metadata.labels']);
});
