import type {
  CustomResourceDefinition,
  JSONSchemaProps,
} from '../../../../../src/objects/types/apiextensions.generated.ts';
import { expect, test } from 'vitest';

import { schemaWarnings } from '../../../../../src/registry/apiextensions/customresourcedefinition/strategy.ts';

function definition(properties: Record<string, JSONSchemaProps>): CustomResourceDefinition {
  const schema = { openAPIV3Schema: { type: 'object', properties } };
  const names = { plural: 'boats', kind: 'Boat' };
  return {
    metadata: { name: 'boats.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Cluster',
      names,
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
    status: { conditions: null, acceptedNames: names, storedVersions: ['v1'] },
  };
}

const nested: JSONSchemaProps = {
  type: 'array',
  items: { type: 'object', additionalProperties: { type: 'string', format: 'tonnage' } },
};

test('formats that are not checked are reported once each', () => {
  const all = definition({
    a: { type: 'string', format: 'ship' },
    b: { type: 'string', format: 'ship' },
    c: nested,
    d: { type: 'string', format: 'date-time' },
    e: { type: 'string', format: 'k8s-short-name' },
    f: { type: 'integer', format: 'int32' },
    g: { type: 'number', format: 'double' },
    h: { type: 'integer', format: 'double' },
    i: { type: 'number', format: 'int64' },
    j: { 'x-kubernetes-int-or-string': true, format: 'int-or-string' },
    k: { type: 'object', format: 'uuid' },
  });
  const warned = ['ship', 'tonnage', 'double', 'int64', 'int-or-string', 'uuid'];
  expect(schemaWarnings(all)).toEqual(warned.map((format) => `unrecognized format "${format}"`));
});

test('an update warns of new ones only', () => {
  const old = definition({ c: nested });
  const next = definition({ c: nested, a: { type: 'string', format: 'ship' } });
  expect(schemaWarnings(next, old)).toEqual(['unrecognized format "ship"']);
  expect(schemaWarnings(old, next)).toEqual([]);
});

test('sets of objects and lists are reported once for each type', () => {
  const set = (type: string): JSONSchemaProps => ({
    ...{ type: 'array', 'x-kubernetes-list-type': 'set' },
    items: { type, 'x-kubernetes-map-type': 'atomic' },
  });
  const odd = { a: set('object'), b: { type: 'object', properties: { c: set('array'), d: set('object') } } };
  const text = (type: string) =>
    `x-kubernetes-list-type: set for items of type "${type}" is not supported by server-side apply or CEL validation rules`;
  expect(schemaWarnings(definition({ ...odd, e: set('string') }))).toEqual([text('array'), text('object')]);
  expect(schemaWarnings(definition(odd), definition({ a: set('object') }))).toEqual([text('array')]);
});
