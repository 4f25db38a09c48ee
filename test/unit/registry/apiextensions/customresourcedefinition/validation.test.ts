import type {
  CustomResourceDefinition,
  CustomResourceDefinitionVersion,
} from '../../../../../src/objects/types/apiextensions.generated.ts';
import { describe, expect, test } from 'vitest';
import { createCertificateAuthority } from '../../../../../src/tls/certificates.ts';
import { mayKeepWrongBundle } from '../../../../../src/registry/apiextensions/customresourcedefinition/conversion.ts';
import { validateApproval } from '../../../../../src/registry/apiextensions/customresourcedefinition/strategy.ts';

import {
  validateAcceptedNames,
  validateDefinition,
  validateDefinitionName,
  validatePreservation,
} from '../../../../../src/registry/apiextensions/customresourcedefinition/validation.ts';

const schema = {
  openAPIV3Schema: {
    type: 'object',
    properties: { spec: { type: 'object', properties: { color: { type: 'string' } } } },
  },
};
const v1: CustomResourceDefinitionVersion = { name: 'v1', served: true, storage: true, schema };

function definition(
  spec: Partial<CustomResourceDefinition['spec']>,
  storedVersions: string[] | null = ['v1'],
): CustomResourceDefinition {
  return {
    metadata: { name: 'widgets.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
      versions: [v1],
      ...spec,
    },
    status: { conditions: null, acceptedNames: { plural: '', kind: '' }, storedVersions },
  };
}

const base64 = (text: string) => Buffer.from(text).toString('base64');
const texts = (errors: readonly { field: string; body: string }[]) =>
  errors.map(({ field, body }) => `${field}: ${body}`);
const label =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
function shown(name: string, storage: boolean): string {
  return `{"Name":"${name}","Served":true,"Storage":${String(storage)},"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}`;
}

describe('selectable fields', () => {
  const properties = {
    color: { type: 'string' },
    map: { type: 'object', additionalProperties: { type: 'string' } },
    open: { type: 'object', additionalProperties: true },
  };
  const spec = { type: 'object', properties };
  const metadata = { type: 'object', properties: { name: { type: 'string' } } };
  const openAPIV3Schema = { type: 'object', properties: { spec, metadata } };
  const other = { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object' } } } };
  const version = (
    name: string,
    jsonPath: string,
    own: CustomResourceDefinitionVersion['schema'] = { openAPIV3Schema },
  ): CustomResourceDefinitionVersion => ({
    ...v1,
    name,
    storage: name === 'v1',
    schema: own,
    selectableFields: [{ jsonPath }],
  });
  const detail = (...versions: CustomResourceDefinitionVersion[]) =>
    texts(validateDefinition(definition({ versions }))).map((message) =>
      message.replace(/^spec\.selectableFields\[0\]\.jsonPath: Invalid value: ".*": (?=is|must)/, ''),
    );
  const scalar =
    'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.';

  test.each([
    ['.spec.color', []],
    ['.spec.map.a', []],
    ['.spec.map', [scalar]],
    ['.spec.open.a', [scalar]],
    ['.spec.', ['is an invalid path: unexpected end of JSON path']],
    ['.spec..color', ['is an invalid path: does not refer to a valid field']],
    ['.spec.color.x', ['is an invalid path: does not refer to a valid field']],
    ['spec.color', ['is an invalid path: expected [ or . but got: spec']],
    ['.spec]color', ['is an invalid path: expected [ or . but got: ]']],
    ["'.spec'", ["is an invalid path: expected [ or . but got: '.spec'"]],
    [".spec['color']", ['is an invalid path: array notation is not allowed']],
    ['[spec]', ['is an invalid path: array notation is not allowed']],
    ['.metadata.name', ['must not point to fields in metadata']],
  ])('at %s', (jsonPath, expected) => {
    expect(detail(version('v1', jsonPath))).toEqual(expected);
  });

  test('are judged by the schema that stands beside them in the internal form', () => {
    expect(detail(version('v1', '.spec.color'), version('v2', '.spec.map.a'))).toEqual([
      'spec.versions[0].selectableFields: Invalid value: "": may only be set when `version.schema.openAPIV3Schema` is not included',
      'spec.versions[1].selectableFields: Invalid value: "": may only be set when `version.schema.openAPIV3Schema` is not included',
    ]);
    expect(detail(version('v1', '.spec.color'), version('v2', '.spec.color', other))).toEqual([
      'spec.selectableFields: Invalid value: "": may only be set when validations.schema is included',
    ]);
    expect(detail(version('v1', '.spec.color'), version('v2', '.spec.x', other))).toEqual([
      'spec.versions[1].selectableFields[0].jsonPath: Invalid value: ".spec.x": is an invalid path: does not refer to a valid field',
    ]);
    expect(detail(version('v1', '.spec.color'), version('v2', '.spec.color'))).toEqual([]);
  });
});

describe('a definition is refused', () => {
  test.each<[string, Partial<CustomResourceDefinition['spec']>, string[]]>([
    [
      'with two versions of one name',
      { versions: [v1, { ...v1, storage: false }] },
      [
        `spec.versions: Invalid value: [${shown('v1', true)},${shown('v1', false)}]: must contain unique version names`,
      ],
    ],
    [
      'with two versions that are stored',
      { versions: [v1, { ...v1, name: 'v2' }] },
      [
        `spec.versions: Invalid value: [${shown('v1', true)},${shown('v2', true)}]: must have exactly one version marked as storage version`,
        'status.storedVersions: Invalid value: ["v1"]: must have the storage version v2',
      ],
    ],
    [
      'with a version name that is none',
      { versions: [{ ...v1, name: 'V1' }] },
      [
        `spec.versions[0].name: Invalid value: "V1": ${label}`,
        `spec.version: Invalid value: "V1": ${label}`,
        'status.storedVersions: Invalid value: ["v1"]: must have the storage version V1',
        'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions',
      ],
    ],
    [
      'without a schema',
      { versions: [{ name: 'v1', served: true, storage: true }] },
      ['spec.versions[0].schema.openAPIV3Schema: Required value'],
    ],
    [
      'with the schema told of behind the names',
      {
        names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'Widget' },
        versions: [{ ...v1, schema: { openAPIV3Schema: { type: 'array' } } }],
      },
      [
        'spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same',
        'spec.validation.openAPIV3Schema.items: Required value: must be specified',
        'spec.validation.openAPIV3Schema.type: Invalid value: "array": must be object at the root',
      ],
    ],
    [
      'with columns of no sort',
      {
        versions: [
          { ...v1, additionalPrinterColumns: [{ name: 'A', type: 'map', format: 'long', jsonPath: 'x' }] },
        ],
      },
      [
        'spec.additionalPrinterColumns[0].type: Invalid value: "map": must be one of boolean,date,integer,number,string',
        'spec.additionalPrinterColumns[0].format: Invalid value: "long": must be one of byte,date,date-time,double,float,int32,int64,password',
        'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "x": must be a simple json path starting with .',
      ],
    ],
    [
      'with selectable fields that are no fields',
      {
        versions: [
          {
            ...v1,
            selectableFields: [
              { jsonPath: '.spec.size' },
              { jsonPath: '.spec' },
              { jsonPath: '.spec.color' },
              { jsonPath: '.spec.color' },
            ],
          },
        ],
      },
      [
        'spec.selectableFields[0].jsonPath: Invalid value: ".spec.size": is an invalid path: does not refer to a valid field',
        'spec.selectableFields[1].jsonPath: Invalid value: ".spec": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.',
        'spec.selectableFields[3].jsonPath: Duplicate value: ".spec.color"',
      ],
    ],
    [
      'with a warning of what is not deprecated',
      { versions: [{ ...v1, deprecationWarning: 'soon' }] },
      ['spec.versions[0].deprecationWarning: Invalid value: "soon": can only be set for deprecated versions'],
    ],
  ])('%s', (_name, spec, expected) => {
    expect(texts(validateDefinition(definition(spec)))).toEqual(expected);
  });

  test('without any version', () => {
    expect(texts(validateDefinition(definition({ versions: [] }, null)))).toEqual([
      'spec.versions: Invalid value: []: must have exactly one version marked as storage version',
      'status.storedVersions: Invalid value: null: must have at least one stored version',
    ]);
  });

  test('by another name than its plural and group', () => {
    expect(texts(validateDefinitionName(definition({ group: 'example.org' })))).toEqual([
      'metadata.name: Invalid value: "widgets.example.com": must be spec.names.plural+"."+spec.group',
    ]);
  });

  test('with unknown fields, unless it had them before', () => {
    const free = definition({ preserveUnknownFields: true });
    expect(texts(validatePreservation(free))).toEqual([
      'spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead',
    ]);
    expect(validatePreservation(free, free)).toEqual([]);
  });

  test.each<[string, CustomResourceDefinition['spec']['conversion'], string[]]>([
    [
      'by a webhook without a configuration',
      { strategy: 'Webhook' },
      [
        'spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook',
        'spec.conversion.conversionReviewVersions: Required value',
      ],
    ],
    [
      'by a webhook that knows no version of ours',
      {
        strategy: 'Webhook',
        webhook: {
          clientConfig: { service: { name: 'a', namespace: 'b' } },
          conversionReviewVersions: ['v9', 'v9', 'V'],
        },
      },
      [
        'spec.conversion.conversionReviewVersions[1]: Invalid value: "v9": duplicate version',
        `spec.conversion.conversionReviewVersions[2]: Invalid value: "V": ${label}`,
        'spec.conversion.conversionReviewVersions: Invalid value: ["v9","v9","V"]: must include at least one of v1, v1beta1',
      ],
    ],
    [
      'by nothing, and a webhook all the same',
      {
        strategy: 'None',
        webhook: { clientConfig: { url: 'https://a' }, conversionReviewVersions: ['v1'] },
      },
      [
        'spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook',
        'spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook',
      ],
    ],
  ])('that converts %s', (_name, conversion, expected) => {
    expect(texts(validateDefinition(definition({ ...(conversion && { conversion }) })))).toEqual(expected);
  });

  const webhook = (caBundle: string) => ({
    strategy: 'Webhook',
    webhook: { clientConfig: { url: 'https://a', caBundle }, conversionReviewVersions: ['v1'] },
  });

  test('that converts by a webhook and preserves undeclared fields', () => {
    const preserving = definition({ preserveUnknownFields: true, conversion: webhook('') });
    expect(texts(validateDefinition(preserving))).toEqual([
      'spec.conversion.strategy: Invalid value: "Webhook": must be None if spec.preserveUnknownFields is true',
    ]);
  });

  test.each([
    ['Cg==', 'unable to parse bytes as PEM block'],
    [base64('-----BEGIN X-----\nMAA=\n-----END X-----\n'), 'no valid certificate authority data seen'],
    [
      base64('-----BEGIN CERTIFICATE-----\nMAAA\n-----END CERTIFICATE-----\n'),
      'failed to parse certificate: x509: malformed certificate',
    ],
  ])('that had a caBundle with a certificate, and has %s', (caBundle, why) => {
    const conversion = webhook(caBundle);
    expect(texts(validateDefinition(definition({ conversion }), [], false))).toEqual([
      `spec.conversion.webhookClientConfig.caBundle: Invalid value: "${caBundle}": unable to load root certificates: ${why}`,
    ]);
    expect(validateDefinition(definition({ conversion }))).toEqual([]);
    expect(mayKeepWrongBundle(conversion, true)).toBe(true);
  });

  test('a caBundle with a certificate is right, and is not to be lost', () => {
    const { certificate } = createCertificateAuthority('a', { now: new Date() });
    const conversion = webhook(base64(`# a comment\n${certificate}`));
    expect(validateDefinition(definition({ conversion }), [], false)).toEqual([]);
    expect(mayKeepWrongBundle(conversion, true)).toBe(false);
    expect(mayKeepWrongBundle(conversion, false)).toBe(true);
  });
});

describe('a group of Kubernetes needs an approval', () => {
  const approved = (text?: string): CustomResourceDefinition => {
    const plain = definition({ group: 'apps.k8s.io' });
    if (text === undefined) return plain;
    return { ...plain, metadata: { ...plain.metadata, annotations: { 'api-approved.kubernetes.io': text } } };
  };
  const faults = (now: CustomResourceDefinition, old?: CustomResourceDefinition) =>
    texts(validateApproval(now, now.spec.group, old));

  test('which is a URL, or says that there was none', () => {
    expect(faults(approved())).toEqual([
      'metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111',
    ]);
    expect(faults(approved('yes'))).toEqual([
      'metadata.annotations[api-approved.kubernetes.io]: Invalid value: "yes": protected groups must have approval annotation "api-approved.kubernetes.io" with either a URL or a reason starting with "unapproved", see https://github.com/kubernetes/enhancements/pull/1111',
    ]);
    expect(faults(approved('https://example.com/review'))).toEqual([]);
    expect(faults(approved('unapproved, an experiment'))).toEqual([]);
    expect(validateApproval(approved('yes'), 'example.com')).toEqual([]);
  });

  test('but what was so before is left alone', () => {
    expect(faults(approved(), approved())).toEqual([]);
    expect(faults(approved('no'), approved('yes'))).toEqual([]);
    expect(faults(approved('no'), approved())).toHaveLength(1);
  });
});

test('accepted names may be missing, but must be names', () => {
  expect(validateAcceptedNames({ plural: '', kind: '' })).toEqual([]);
  expect(texts(validateAcceptedNames({ plural: 'a b', kind: '' }))).toEqual([
    `status.acceptedNames.plural: Invalid value: "a b": ${label}`,
  ]);
});

test('a sound definition passes', () => {
  expect(validateDefinition(definition({}))).toEqual([]);
  expect(validatePreservation(definition({}))).toEqual([]);
});

describe('patterns', () => {
  const withPatterns = (patterns: readonly string[]): string[] => {
    const properties = Object.fromEntries(
      patterns.map((pattern, i) => [`p${i}`, { type: 'string', pattern }]),
    );
    const versions = [{ ...v1, schema: { openAPIV3Schema: { type: 'object', properties } } }];
    return validateDefinition(definition({ versions })).map(({ field, body }) => `${field}: ${body}`);
  };

  test('that are large together are refused before they are compiled', () => {
    const large = Array.from({ length: 20 }, (_, i) => `(a|b|c|d){1000}${i}`);
    expect(withPatterns(large.slice(0, 1))).toEqual([]);
    expect(withPatterns(large)).toEqual([
      'spec.versions: Forbidden: the patterns of the schemas are too large together',
    ]);
  });

  test('that are the same count once', () => {
    expect(withPatterns(Array.from({ length: 500 }, () => '^(a|b|c|d){1000}$'))).toEqual([]);
  });
});
