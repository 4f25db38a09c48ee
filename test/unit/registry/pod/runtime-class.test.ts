import { expect, test } from 'vitest';
import { admitRuntimeClass } from '../../../../src/registry/pod/runtime-class.ts';

test('a Pod may not name a runtime class, as there is none', () => {
  const spec = { containers: [] };
  expect(() => admitRuntimeClass({ metadata: { name: 'a' } }, spec)).not.toThrow();
  expect(() => admitRuntimeClass({ metadata: { name: 'a' } }, { ...spec, runtimeClassName: 'kata' })).toThrow(
    'pods "a" is forbidden: pod rejected: RuntimeClass "kata" not found',
  );
});
