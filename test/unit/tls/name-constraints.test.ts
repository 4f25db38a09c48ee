import { expect, test } from 'vitest';
import { constraintFault } from '../../../src/tls/name-constraints.ts';

const none = { dns: [], ip: [], email: [], uri: [] };

test('names obey the constraints above them, not their own and not those below', () => {
  const names = { ...none, dns: ['a.example'] };
  const elsewhere = { permitted: { ...none, dns: ['b.example'] }, excluded: none };
  const plain = { names: undefined, nameConstraints: undefined };
  const server = { names, nameConstraints: undefined };
  const authority = { names: undefined, nameConstraints: elsewhere };
  expect(constraintFault([server, plain])).toBeUndefined();
  expect(constraintFault([{ names, nameConstraints: elsewhere }, plain])).toBeUndefined();
  expect(constraintFault([plain, { names, nameConstraints: elsewhere }, plain])).toBeUndefined();
  const fault = 'DNS name "a.example" is not permitted by any constraint';
  expect(constraintFault([server, plain, authority])).toContain(fault);
  expect(constraintFault([plain, server, authority])).toContain(fault);
});
