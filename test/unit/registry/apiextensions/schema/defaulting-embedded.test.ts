import type { JSONSchemaProps } from '../../../../../src/objects/types/apiextensions.generated.ts';
import { expect, test } from 'vitest';
import { validateEmbedded } from '../../../../../src/registry/apiextensions/schema/defaulting.ts';

const schema: JSONSchemaProps = {
  type: 'object',
  properties: {
    template: {
      type: 'object',
      'x-kubernetes-embedded-resource': true,
      'x-kubernetes-preserve-unknown-fields': true,
    },
  },
};

test.each<[string, object, string[]]>([
  ['an object', { apiVersion: 'apps/v1', kind: 'Deployment' }, []],
  ['no object at all', {}, ['template.apiVersion: Required value', 'template.kind: Required value']],
  [
    'empty words',
    { apiVersion: '', kind: '' },
    [
      'template.apiVersion: Invalid value: "": must not be empty',
      'template.kind: Invalid value: "": must not be empty',
    ],
  ],
  [
    'a version that is none',
    { apiVersion: 'a/b/c', kind: 'Pod' },
    ['template.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'],
  ],
  [
    'metadata with owners and managers',
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: '', uid: 'u' }],
        managedFields: [{ manager: 'm', operation: 'Odd' }],
      },
    },
    [
      'template.metadata.ownerReferences[0].name: Required value: must not be empty',
      'template.metadata.managedFields[0].operation: Unsupported value: "Odd": supported values: "Apply", "Update"',
    ],
  ],
])('%s', (_name, template, expected) => {
  const errors = validateEmbedded(schema, { template });
  expect(errors.map(({ field, body }) => `${field}: ${body}`)).toEqual(expected);
});
