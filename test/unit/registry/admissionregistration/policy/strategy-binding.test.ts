import { expect, test } from 'vitest';
import { create, definitionOf } from '../../decide.ts';

test.each<[object, readonly string[]]>([
  [{ name: 'limits', parameterNotFoundAction: 'Deny' }, []],
  [{ name: '', selector: {}, parameterNotFoundAction: 'Allow' }, []],
  [
    { name: 'limits', parameterNotFoundAction: '' },
    ['spec.paramRef.parameterNotFoundAction: Required value'],
  ],
  [
    { name: '', parameterNotFoundAction: 'deny' },
    [
      'spec.paramRef: Required value: one of name or selector must be specified',
      'spec.paramRef.parameterNotFoundAction: Unsupported value: "deny": supported values: "Deny", "Allow"',
    ],
  ],
  [
    { name: 'a/b', selector: {}, parameterNotFoundAction: 'Deny' },
    [
      `spec.paramRef.name: Invalid value: "a/b": may not contain '/'`,
      'spec.paramRef.name: Forbidden: name and selector are mutually exclusive',
      'spec.paramRef.selector: Forbidden: name and selector are mutually exclusive',
    ],
  ],
])('the binding of a policy with the parameter %j', (paramRef, expected) => {
  const spec = { policyName: 'limits', paramRef };
  const validating = { spec: { ...spec, validationActions: ['Deny'] } };
  expect(create(definitionOf('ValidatingAdmissionPolicyBinding'), validating).errors).toEqual(expected);
  expect(create(definitionOf('MutatingAdmissionPolicyBinding'), { spec }).errors).toEqual(expected);
});
