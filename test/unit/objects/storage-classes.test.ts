import { expect, test } from 'vitest';
import { defaultStorageClass } from '../../../src/objects/storage-classes.ts';

const storageClass = (name: string, creationTimestamp: string, annotation?: string, value = 'true') => ({
  metadata: {
    ...{ name, creationTimestamp },
    ...(annotation === undefined ? {} : { annotations: { [annotation]: value } }),
  },
});
const stable = 'storageclass.kubernetes.io/is-default-class';
const beta = 'storageclass.beta.kubernetes.io/is-default-class';

// pkg/volume/util/storageclass.go GetDefaultClass
test.each([
  [[], undefined],
  [[storageClass('a', '2026-01-01T00:00:00Z')], undefined],
  [[storageClass('a', '2026-01-01T00:00:00Z', stable, 'false')], undefined],
  [[storageClass('a', '2026-01-01T00:00:00Z', beta)], 'a'],
  [
    [storageClass('a', '2026-01-01T00:00:00Z', stable), storageClass('b', '2026-01-02T00:00:00Z', stable)],
    'b',
  ],
  [[storageClass('b', '2026-01-01T00:00:00Z', stable), storageClass('a', '2026-01-01T00:00:00Z', beta)], 'a'],
])('%#: the default class is %s', (classes, name) => {
  expect(defaultStorageClass(classes)).toBe(name);
});
