import { describe, expect, test } from 'vitest';
import { checkPathName } from '../../../../src/apiserver/rest/system-fields.ts';

describe('a name in a path', () => {
  test.each(['a', 'a.b', '...'])('%s may be stored', (name) => {
    expect(() => {
      checkPathName(name);
    }).not.toThrow();
  });

  test.each([
    ['.', `Name parameter invalid: ".": may not be '.'`],
    ['..', `Name parameter invalid: "..": may not be '..'`],
    ['a%', `Name parameter invalid: "a%": may not contain '%'`],
  ])('%s may not', (name, message) => {
    expect(() => {
      checkPathName(name);
    }).toThrow(message);
  });
});
