import { expect, test } from 'vitest';
import {
  asReported,
  declarative,
  errorsOfEach,
  type FieldError,
  invalid,
  invalidObject,
  maxErrorText,
  required,
} from '../../../../src/registry/validation/field-errors.ts';

test('the errors of each item of a list are those that an answer shows of all', () => {
  const items = Array.from({ length: 40_000 }, (_, i) => `item-${i}`);
  let asked = 0;
  const errorsOf = (item: string): FieldError[] => {
    asked++;
    return item.endsWith('7') ? [] : [invalid(`list[${item}]`, item, 'is wrong')];
  };
  const subject = { group: '', kind: 'Thing', name: 'a' };
  const shown = invalidObject(subject, errorsOfEach(items, errorsOf));
  expect(asked * 'Invalid value: "item-12345": is wrong'.length).toBeLessThan(2 * maxErrorText);
  expect(shown.toStatus()).toEqual(invalidObject(subject, items.flatMap(errorsOf)).toStatus());
});

test('a repeated error is named once, where it stands first, and declared ones last', () => {
  const errors = [
    declarative(required('spec.b')),
    required('spec.a'),
    invalid('spec.c', 1, 'is odd'),
    required('spec.a'),
    invalid('spec.c', 3, 'is odd'),
    declarative(required('spec.b')),
  ];
  expect(asReported(errors).map(({ field, body }) => `${field}: ${body}`)).toEqual([
    'spec.a: Required value',
    'spec.c: Invalid value: 1: is odd',
    'spec.c: Invalid value: 3: is odd',
    'spec.b: Required value',
  ]);
});
