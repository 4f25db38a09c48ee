import { conditionStatus } from '../../objects/json.ts';
import { type Condition, conditionOf, replacedCondition } from '../../objects/meta.ts';
import type { StorageVersionMigration } from '../../objects/types/storagemigration.generated.ts';

/** What is next for the migrations of one resource (`pkg/controller/storageversionmigrator/migrationrunner.go`). */
export type Step =
  /** It has succeeded or failed, and still says that it runs. */
  | { readonly do: 'finish'; readonly migration: StorageVersionMigration }
  /** It runs, alone of its resource. */
  | { readonly do: 'migrate'; readonly migration: StorageVersionMigration }
  /** The oldest one that waits. */
  | { readonly do: 'start'; readonly migration: StorageVersionMigration };

function has(migration: StorageVersionMigration, type: string): boolean {
  return conditionStatus(migration.status.conditions ?? [], type) === 'True';
}

/** The next step of those that migrate one resource; undefined: there is nothing to do. */
export function planStep(migrations: Iterable<StorageVersionMigration>): Step | undefined {
  let running: StorageVersionMigration | undefined;
  let oldest: StorageVersionMigration | undefined;
  for (const migration of migrations) {
    const isRunning = has(migration, 'Running');
    const hasEnded = has(migration, 'Succeeded') || has(migration, 'Failed');
    if (isRunning && hasEnded) return { do: 'finish', migration };
    if (isRunning) running ??= migration;
    else if (!hasEnded && (oldest === undefined || isBefore(migration, oldest))) oldest = migration;
  }
  if (running !== undefined) return { do: 'migrate', migration: running };
  return oldest === undefined ? undefined : { do: 'start', migration: oldest };
}

function isBefore(
  { metadata }: StorageVersionMigration,
  { metadata: other }: StorageVersionMigration,
): boolean {
  const [time = '', otherTime = ''] = [metadata.creationTimestamp, other.creationTimestamp];
  return time === otherTime ? (metadata.name ?? '') < (other.name ?? '') : time < otherTime;
}

/** How far a migration is. */
export interface Progress {
  /** Objects that are not rewritten yet. */
  readonly remaining: number;
  readonly total: number;
}

/** The condition Running. @param fault why a rewrite failed that is tried again. */
export function runningCondition(time: string, progress?: Progress, fault?: string): Condition {
  const { remaining = 0, total = 0 } = progress ?? {};
  const objects =
    total === 0
      ? ''
      : remaining > 0
        ? `, ${remaining}/${total} objects not yet migrated`
        : `, ${total} objects verified migrated`;
  const transient = fault === undefined ? '' : `; transient error: ${fault}`;
  return {
    type: 'Running',
    status: 'True',
    lastTransitionTime: time,
    reason: 'MigrationRunning',
    message: `The migration is running${objects}${transient}`,
  };
}

export function succeededCondition(time: string): Condition {
  return {
    type: 'Succeeded',
    status: 'True',
    lastTransitionTime: time,
    reason: 'StorageVersionMigrationSucceeded',
    message: 'Migration completed',
  };
}

export function failedCondition(time: string, message: string): Condition {
  return {
    type: 'Failed',
    status: 'True',
    lastTransitionTime: time,
    reason: 'StorageVersionMigrationFailed',
    message,
  };
}

/** Running becomes False once a migration has ended. */
export function finishedCondition(time: string): Condition {
  return {
    type: 'Running',
    status: 'False',
    lastTransitionTime: time,
    reason: 'MigrationCompleted',
    message: 'Migration completed',
  };
}

/** The migration with these conditions. A condition that keeps its status keeps its time (`meta.SetStatusCondition`). */
export function withConditions(
  migration: StorageVersionMigration,
  ...conditions: readonly Condition[]
): StorageVersionMigration {
  let all = migration.status.conditions ?? [];
  for (const condition of conditions) {
    const before = conditionOf(all, condition.type);
    const lastTransitionTime =
      before?.status === condition.status ? before.lastTransitionTime : condition.lastTransitionTime;
    all = replacedCondition(all, { ...condition, lastTransitionTime });
  }
  return { ...migration, status: { ...migration.status, conditions: all } };
}

/** What happens to the objects of a definition; `changed`: it is another one than when the migration began. */
type DefinitionState = 'running' | 'updated' | 'changed' | 'failed';

/** The condition of a definition (`markAsActive`, `finishCRDMigration`). @param name of the migration. */
export function crdCondition(state: DefinitionState, name: string): Omit<Condition, 'lastTransitionTime'> {
  const type = 'StorageMigrating';
  const succeeded = 'The migration has succeeded';
  switch (state) {
    case 'running':
      return { type, status: 'True', reason: 'MigrationRunning', message: `Migration ${name} is running` };
    case 'updated':
      return {
        ...{ type, status: 'False', reason: 'MigrationSucceeded' },
        message: `${succeeded} and the stored versions have been updated`,
      };
    case 'changed':
      return {
        ...{ type, status: 'False', reason: 'MigrationSucceeded' },
        message: `${succeeded} but the stored versions have not been updated due to a generation mismatch`,
      };
    case 'failed':
      return { type, status: 'False', reason: 'MigrationFailed', message: 'The migration has failed' };
  }
}
