import { describe, expect, test } from 'vitest';
import {
  planStep,
  runningCondition,
  succeededCondition,
  withConditions,
} from '../../../../src/controllers/storage-version-migrator/plan.ts';
import type { StorageVersionMigration } from '../../../../src/objects/types/storagemigration.generated.ts';

const time = '2026-01-01T00:00:00Z';

function migration(name: string, creationTimestamp: string, ...types: string[]): StorageVersionMigration {
  return {
    metadata: { name, creationTimestamp },
    spec: { resource: { group: '', resource: 'pods' } },
    status: {
      conditions: types.map((type) => ({
        type,
        status: 'True',
        lastTransitionTime: time,
        reason: 'a',
        message: '',
      })),
    },
  };
}

describe('of the migrations of a resource', () => {
  const next = (...all: StorageVersionMigration[]) => {
    const step = planStep(all);
    return step && `${step.do} ${step.migration.metadata.name ?? ''}`;
  };
  const waiting = migration('b', '2026-01-02T00:00:00Z');

  test('the oldest begins, by name where they are of one second', () => {
    expect(next(waiting, migration('c', '2026-01-01T00:00:00Z'))).toBe('start c');
    expect(next(waiting, migration('a', '2026-01-02T00:00:00Z'))).toBe('start a');
  });

  test('one runs at a time', () => {
    expect(next(waiting, migration('c', '2026-01-03T00:00:00Z', 'Running'))).toBe('migrate c');
  });

  test('what has ended is finished before the next one begins, and is left alone then', () => {
    expect(next(waiting, migration('a', time, 'Running', 'Failed'))).toBe('finish a');
    expect(next(migration('a', time, 'Succeeded'))).toBeUndefined();
  });
});

test('a condition that keeps its status keeps its time', () => {
  const later = '2026-02-01T00:00:00Z';
  const running = migration('a', time, 'Running');
  const done = withConditions(
    running,
    runningCondition(later, { remaining: 0, total: 3 }),
    succeededCondition(later),
  );
  expect(done.status.conditions).toMatchObject([
    {
      type: 'Running',
      lastTransitionTime: time,
      message: 'The migration is running, 3 objects verified migrated',
    },
    { type: 'Succeeded', lastTransitionTime: later, message: 'Migration completed' },
  ]);
  expect(runningCondition(time, { remaining: 2, total: 3 }, 'no').message).toBe(
    'The migration is running, 2/3 objects not yet migrated; transient error: no',
  );
});
