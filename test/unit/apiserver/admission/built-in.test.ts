import { expect, test } from 'vitest';
import { namespaceLifecycle } from '../../../../src/apiserver/admission/built-in.ts';
import { Admission } from '../../../../src/apiserver/rest/admission.ts';
import { serveResource } from '../../../../src/apiserver/rest/served-resource.ts';
import { createMemoryStorage } from '../../../../src/apiserver/storage/multi-version.ts';
import type { Storage } from '../../../../src/apiserver/storage/storage.ts';
import { builtinSchema } from '../../../../src/apiserver/schema/builtin.ts';
import { otherKindsTable } from '../../../../src/apiserver/tables/cluster.ts';
import { definitionOf } from '../../registry/decide.ts';

function emptyStorage(): Storage {
  return createMemoryStorage({
    encode: (object) => JSON.stringify(object),
    retain: { revisions: 10, milliseconds: 1000 },
    clock: () => 0,
    onListenerError: (error) => {
      throw error;
    },
  });
}

test('what is in a namespace that is gone may be updated, and not added to', () => {
  const configMaps = definitionOf('ConfigMap');
  const plugin = namespaceLifecycle(emptyStorage());
  const attributes = {
    ...{ resource: serveResource(configMaps, builtinSchema(configMaps.schema), () => otherKindsTable) },
    ...{ subresource: '', namespace: 'gone', name: 'a', dryRun: false },
    ...{ object: { metadata: { name: 'a' } }, oldObject: { metadata: { name: 'a' } } },
    user: { name: 'jane', uid: '', groups: [], extra: {} },
  };
  const mutate = (operation: 'CREATE' | 'UPDATE') =>
    new Admission([plugin]).mutate({ ...attributes, operation }, { warn: () => undefined });
  expect(mutate('UPDATE')).toBe(attributes.object);
  expect(() => mutate('CREATE')).toThrow('namespaces "gone" not found');
});
