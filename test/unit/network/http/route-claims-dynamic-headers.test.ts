import { expect, it } from 'vitest';
import { dynamicHeaderProblem } from '../../../../src/network/http/route-claims.ts';
import { route } from './objects.ts';

const header = (value: string) => ({ name: 'X-A', action: { type: 'Set', set: { value } } });
const problemOf = (actions: object) => dynamicHeaderProblem(route('a/web', { httpHeaders: { actions } }));

it.each(['plain', '100%%', '%%[req.hdr(Host)]'])('%s is a value', (value) => {
  expect(problemOf({ request: [header(value)], response: [header(value)] })).toBeUndefined();
});

it.each(['%[req.hdr(Host),lower]', '%{+Q}[ssl_c_der,base64]', '%%%[res.hdr(X)]'])(
  '%s is refused',
  (value) => {
    const message = 'the value for the header X-A is dynamic (%[…]), which this router does not support';
    const refusal = { reason: 'ExtendedValidationFailed', message };
    expect(problemOf({ request: [header('plain'), header(value)] })).toEqual(refusal);
    expect(problemOf({ response: [header(value)] })).toEqual(refusal);
  },
);

it('a header that is deleted has no value', () => {
  expect(problemOf({ request: [{ name: 'X-A', action: { type: 'Delete' } }] })).toBeUndefined();
  expect(dynamicHeaderProblem(route('a/web', {}))).toBeUndefined();
});
