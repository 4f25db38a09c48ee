import { describe, expect, it } from 'vitest';
import { create, definitionOf, update } from '../../decide.ts';

const classes = definitionOf('IngressClass');
const controller = 'example.com/c';

describe('an IngressClass', () => {
  it('has parameters of the cluster unless they say otherwise', () => {
    const parameters = { kind: 'K', name: 'n' };
    expect(create(classes, { spec: { controller, parameters } }).object).toMatchObject({
      metadata: { generation: 1 },
      spec: { parameters: { ...parameters, scope: 'Cluster' } },
    });
  });

  it.each([
    [{}, ['spec.controller: Required value']],
    [
      { controller: 'plain' },
      ['spec.controller: Invalid value: "plain": must be a domain-prefixed path (such as "acme.io/foo")'],
    ],
    [
      { controller: 'example.com/a b' },
      [
        `spec.controller: Invalid value: "a b": Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')`,
      ],
    ],
    [{ controller: `a.b/${'c'.repeat(250)}` }, ['spec.controller: Too long: may not be more than 250 bytes']],
    [
      { controller, parameters: {} },
      ['spec.parameters.kind: Required value', 'spec.parameters.name: Required value'],
    ],
    [
      { controller, parameters: { kind: 'K', name: 'n', scope: 'Namespace' } },
      ["spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"],
    ],
    [
      { controller, parameters: { kind: 'K', name: 'n', namespace: 'x' } },
      ["spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"],
    ],
  ])('%j is refused', (spec, errors) => {
    expect(create(classes, { spec }).errors).toEqual(errors);
  });

  it('keeps its controller', () => {
    const old = create(classes, { spec: { controller } }).stored;
    expect(update(classes, old, { spec: { controller: 'example.com/d' } }).errors).toEqual([
      'spec.controller: Invalid value: "example.com/d": field is immutable',
    ]);
  });
});
