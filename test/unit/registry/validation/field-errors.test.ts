import { expect, test } from 'vitest';
import {
  errorsOfEach,
  type FieldError,
  invalid,
  invalidObject,
  maxErrorText,
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
