import { expect, test } from 'vitest';
import type { KubeObject } from '../../../../src/objects/meta.ts';
import type { PersistentVolumeClaim } from '../../../../src/objects/types/core.generated.ts';
import { resizeObstacle } from '../../../../src/registry/core/persistentvolumeclaim.ts';
import { create, definitionOf, update } from '../decide.ts';

const kind = definitionOf('PersistentVolumeClaim');
const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
const immutable =
  'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims';

// apis/core/validation `validateStorageClassUpgradeFromNil`
test.each([
  ['no class', {}, {}, { storageClassName: 'standard' }, true],
  ['the empty class', { storageClassName: '' }, {}, { storageClassName: 'standard' }, false],
  ['a class', { storageClassName: 'slow' }, {}, { storageClassName: 'standard' }, false],
  ['a class, which goes', { storageClassName: 'slow' }, {}, { storageClassName: undefined }, false],
  [
    'a class by annotation',
    {},
    { 'volume.beta.kubernetes.io/storage-class': 'slow' },
    { storageClassName: 'standard' },
    false,
  ],
  [
    'a class by annotation, which is that one',
    {},
    { 'volume.beta.kubernetes.io/storage-class': 'slow' },
    { storageClassName: 'slow' },
    true,
  ],
  ['no class, and another mode', {}, {}, { storageClassName: 'standard', volumeMode: 'Block' }, false],
] as const)('a claim with %s may get one afterwards', (_, before, annotations, change, isAllowed) => {
  const { stored } = create(kind, { metadata: { name: 'data', annotations }, spec: { ...spec, ...before } });
  const { errors } = update(kind, stored, {
    spec: { ...spec, ...before, volumeMode: 'Filesystem', ...change },
  });
  expect(JSON.stringify(errors).includes(immutable)).toBe(!isAllowed);
});

const sized = (storage: string) => ({ ...spec, storageClassName: 'c', resources: { requests: { storage } } });
const claimOf = (storage: string, status: object) =>
  // As the server has stored it.
  Object.assign(create(kind, { metadata: { name: 'data' }, spec: sized(storage) }).stored, { status });

// apis/core/validation `ValidatePersistentVolumeClaimUpdate`
test.each([
  ['Pending', '2Gi', '3Gi', immutable],
  ['Bound', '2Gi', '3Gi', undefined],
  ['Bound', '3Gi', '2Gi', undefined],
  [
    'Bound',
    '3Gi',
    '1Gi',
    'spec.resources.requests.storage: Forbidden: field can not be less than status.capacity',
  ],
  [
    'Bound',
    '1Gi',
    '512Mi',
    'spec.resources.requests.storage: Forbidden: field can not be less than status.capacity',
  ],
])('a %s claim of %s with a volume of 1Gi asks for %s: %s', (phase, before, after, why) => {
  const old = claimOf(before, { phase, capacity: { storage: '1Gi' } });
  const { errors } = update(kind, old, { spec: { ...sized(after), volumeMode: 'Filesystem' } });
  if (why === undefined) expect(errors).toEqual([]);
  else expect(JSON.stringify(errors)).toContain(why);
});

// admission/storage/persistentvolume/resize
test.each([
  ['Bound', true, '3Gi', undefined],
  ['Bound', true, '1Gi', undefined],
  ['Bound', false, '2Gi', undefined],
  ['Bound', false, '3Gi', /^only dynamically provisioned pvc can be resized and the storageclass/],
  ['Bound', undefined, '3Gi', /^only dynamically provisioned/],
  ['Pending', true, '3Gi', /^Only bound persistent volume claims can be expanded$/],
])('a %s claim of 2Gi, of a class that allows it (%s), grows to %s: %s', (phase, allows, after, why) => {
  const storageClass = { metadata: { name: 'c' }, allowVolumeExpansion: allows };
  const cluster = { list: () => [], get: () => (allows === undefined ? undefined : storageClass) };
  const [claim, old] = [claimOf(after, { phase }), claimOf('2Gi', { phase })];
  if (!isClaim(claim) || !isClaim(old)) throw new Error('no claim');
  const obstacle = resizeObstacle(claim, old, cluster);
  if (why === undefined) expect(obstacle).toBeUndefined();
  else expect(obstacle).toMatch(why);
});

function isClaim(object: KubeObject): object is PersistentVolumeClaim {
  return object.kind === 'PersistentVolumeClaim';
}
