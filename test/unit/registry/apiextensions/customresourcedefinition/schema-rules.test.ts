import type {
  JSONSchemaProps,
  ValidationRule,
} from '../../../../../src/objects/types/apiextensions.generated.ts';
import { describe, expect, test } from 'vitest';

import { validateSchema } from '../../../../../src/registry/apiextensions/customresourcedefinition/structural.ts';

const spec: JSONSchemaProps = {
  type: 'object',
  properties: { a: { type: 'integer' }, list: { type: 'array', items: { type: 'string' } } },
};

/** What is wrong with a schema, the rules' place cut off. */
function faults(schema: JSONSchemaProps): string[] {
  const errors = validateSchema(schema, 's');
  return errors.map(({ field, body }) => `${field}: ${body}`);
}

function ruleFaults(rule: Partial<ValidationRule>): string[] {
  const full = { rule: 'self.a > 1', ...rule };
  const found = faults({
    type: 'object',
    properties: { spec: { ...spec, 'x-kubernetes-validations': [full] } },
  });
  return found.map((fault) => fault.replace('s.properties[spec].x-kubernetes-validations[0].', ''));
}

/** As kube-apiserver shows a rule. */
function shown(rule: string, more: object = {}): string {
  return JSON.stringify({
    Rule: rule,
    Message: '',
    MessageExpression: '',
    Reason: null,
    FieldPath: '',
    OptionalOldSelf: null,
    ...more,
  });
}

describe('a rule is refused', () => {
  test.each<[string, Partial<ValidationRule>, string[]]>([
    ['without text', { rule: ' ' }, ['rule: Required value: rule is not specified']],
    [
      'with an empty message',
      { message: ' ' },
      ['message: Invalid value: " ": must be non-empty if specified'],
    ],
    [
      'with lines in its message',
      { message: 'a\nb' },
      [String.raw`message: Invalid value: "a\nb": must not contain line breaks`],
    ],
    [
      'of several lines without a message',
      { rule: 'self.a\n> 1' },
      ['message: Required value: message must be specified if rule contains line breaks'],
    ],
    [
      'with an empty messageExpression',
      { messageExpression: ' ' },
      ['messageExpression: Required value: messageExpression must be non-empty if specified'],
    ],
    [
      'with an unknown reason',
      { reason: 'Other' },
      [
        'reason: Unsupported value: "Other": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"',
      ],
    ],
    ['with a path to nothing', { fieldPath: '.x' }, ['fieldPath: Invalid value: ".x": must be a valid path']],
    [
      'that does not compile',
      { rule: 'self.b > 1' },
      [
        String.raw`rule: Invalid value: ${shown('self.b > 1').replaceAll('>', '\\u003e')}: compilation failed: ERROR: <input>:1:5: undefined field 'b'` +
          '\n | self.b > 1\n | ....^',
      ],
    ],
    [
      'that is no condition',
      { rule: 'self.a' },
      [`rule: Invalid value: ${shown('self.a')}: cel expression must evaluate to a bool`],
    ],
    [
      'with a message that is no text',
      { rule: 'true', messageExpression: '1' },
      [
        `messageExpression: Invalid value: ${shown('true', { MessageExpression: '1' })}: messageExpression must evaluate to a string`,
      ],
    ],
    [
      'with an optional oldSelf that it does not read',
      { optionalOldSelf: true },
      ['optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule'],
    ],
  ])('%s', (_name, rule, expected) => {
    expect(ruleFaults(rule)).toEqual(expected);
  });

  test('that compares items which cannot be told apart', () => {
    const items: JSONSchemaProps = {
      type: 'string',
      maxLength: 9,
      'x-kubernetes-validations': [{ rule: 'self == oldSelf' }],
    };
    expect(faults({ type: 'object', properties: { l: { type: 'array', maxItems: 9, items } } })).toEqual([
      's.properties[l].items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within s.properties[l]',
    ]);
  });

  test('on values of which the schema says nothing', () => {
    const free: JSONSchemaProps = {
      'x-kubernetes-preserve-unknown-fields': true,
      'x-kubernetes-validations': [{ rule: 'true' }],
    };
    expect(faults({ type: 'object', properties: { free } })).toEqual([
      's.properties[free].x-kubernetes-validations: Internal error: internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations',
    ]);
  });
});

test('a default must hold its rules', () => {
  const a: JSONSchemaProps = {
    type: 'integer',
    default: 1,
    'x-kubernetes-validations': [{ rule: 'self > 1' }],
  };
  expect(faults({ type: 'object', properties: { a } })).toEqual([
    's.properties[a].default: Invalid value: 1: failed rule: self > 1',
  ]);
});

test('rules are not compiled against a schema that does not hold', () => {
  const broken: JSONSchemaProps = {
    type: 'object',
    nullable: true,
    'x-kubernetes-validations': [{ rule: 'self.x' }],
  };
  expect(faults(broken)).toEqual(['s.nullable: Forbidden: nullable cannot be true at the root']);
});
