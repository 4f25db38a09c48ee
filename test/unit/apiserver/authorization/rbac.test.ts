import { expect, test } from 'vitest';
import { RbacAuthorizer } from '../../../../src/apiserver/authorization/rbac.ts';
import { createMemoryStorage } from '../../../../src/apiserver/storage/multi-version.ts';
import { heapUsed } from '../../../support/heap.ts';

test('namespaces that clients make up are not remembered', () => {
  const storage = createMemoryStorage({
    encode: (object) => JSON.stringify(object),
    retain: { revisions: 100, milliseconds: 60_000 },
    clock: Date.now,
    onListenerError: (error) => expect.fail(String(error)),
  });
  const rbac = new RbacAuthorizer(storage);
  const anonymous = { name: 'system:anonymous', uid: '', groups: ['system:unauthenticated'], extra: {} };
  const ask = (namespace: string): boolean =>
    rbac.authorize(anonymous, {
      verb: 'get',
      path: '',
      resource: { group: '', resource: 'pods', subresource: '', namespace, name: 'a' },
    }).allowed;
  const before = heapUsed();
  // A path may be a megabyte long.
  for (let i = 0; i < 1000; i++) expect(ask(Buffer.alloc(100_000, `${i} `).toString('latin1'))).toBe(false);
  expect(heapUsed() - before).toBeLessThan(20_000_000);
});
