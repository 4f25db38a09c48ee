import { expect, test } from 'vitest';
import type { Condition } from '../../../../src/objects/meta.ts';
import { validateConditions } from '../../../../src/registry/validation/conditions.ts';

const good: Condition = {
  type: 'Ready',
  status: 'True',
  lastTransitionTime: '2026-01-01T00:00:00Z',
  reason: 'AllFine',
  message: '',
};

test.each<[string, readonly Condition[], readonly string[]]>([
  ['are good', [good, { ...good, type: 'example.com/Other' }], []],
  ['have one type twice', [good, good], ['c[1]: Duplicate value: "Ready"']],
  [
    'lack everything',
    [{ ...good, type: '', reason: '', lastTransitionTime: '' }],
    [
      'c[0].type: Required value: is required',
      'c[0].lastTransitionTime: Required value',
      'c[0].reason: Required value',
    ],
  ],
  [
    'look back too far, for a reason too long',
    [{ ...good, observedGeneration: -1, reason: 'R'.repeat(1025), message: 'm'.repeat(32_769) }],
    [
      'c[0].observedGeneration: Invalid value: -1: must be greater than or equal to zero',
      'c[0].reason: Too long: may not be more than 1024 bytes',
      'c[0].message: Too long: may not be more than 32768 bytes',
    ],
  ],
  [
    'have an odd reason',
    [{ ...good, reason: '7 reasons' }],
    [
      "c[0].reason: Invalid value: \"7 reasons\": a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')",
    ],
  ],
])('conditions that %s', (_what, conditions, errors) => {
  expect(validateConditions(conditions, 'c').map(({ field, body }) => `${field}: ${body}`)).toEqual(errors);
});
