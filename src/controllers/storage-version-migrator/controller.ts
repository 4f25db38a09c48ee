import { isConflict, isNotFound, isUnreached } from '../../client/errors.ts';
import { discover, type DiscoveredType } from '../../client/discovery.ts';
import { ResourceClient } from '../../client/resource-client.ts';
import { apiVersionOf, customResourceDefinitions, storageVersionMigrations } from '../../client/resources.ts';
import type { Transport } from '../../client/transport.ts';
import {
  compareResourceVersions,
  type Condition,
  conditionOf,
  type KubeObject,
  type ObjectKey,
  replacedCondition,
} from '../../objects/meta.ts';
import { errorMessage, StatusError } from '../../objects/status.ts';
import { formatTime } from '../../objects/formats/time.ts';
import type { CustomResourceDefinition } from '../../objects/types/apiextensions.generated.ts';
import type { StorageVersionMigration } from '../../objects/types/storagemigration.generated.ts';
import type { ControllerSpec, KeyLoop, ReconcileResult } from '../../runtime/key-loop.ts';
import { OwnWrites } from '../../runtime/own-writes.ts';
import {
  crdCondition,
  failedCondition,
  finishedCondition,
  planStep,
  type Progress,
  runningCondition,
  succeededCondition,
  withConditions,
} from './plan.ts';

/** The field manager of rewritten objects. */
const controllerName = 'storage-version-migrator-controller';
/** The field manager of the status of definitions. */
const runnerName = 'migration-runner-controller';
/** A definition that was just created shows in discovery within this time. */
const discoveryMs = 60_000;
const discoveryRetryMs = 2000;
/** A list of it says the present version of a resource, and has no objects. */
const emptyNamespace = 'storage-version-migrator-no-such-namespace';
const neededVerbs = ['update', 'patch', 'list'];

/** `plural.group` of what a migration rewrites. */
function resourceKey({ spec }: StorageVersionMigration): ObjectKey {
  const { group, resource } = spec.resource;
  return `${resource}.${group}`;
}

/**
 * Writes every object of a resource once more, so that it is stored in the version that the server stores now
 * (kube-controller-manager's `storage-version-migrator-controller`). Of those of one resource one runs at a time.
 *
 * @param transport for discovery, and for resources that are not known in advance.
 */
export function storageVersionMigratorController(transport: Transport): ControllerSpec {
  return {
    name: controllerName,
    eventSource: controllerName,
    queue: 'storage_version_migrator',
    build(loop) {
      const migrator = new Migrator(loop, transport);
      return (key, signal) => migrator.reconcile(key, signal);
    },
  };
}

class Migrator {
  readonly #transport: Transport;
  readonly #clock: KeyLoop['context']['clock'];
  readonly #client: ResourceClient<StorageVersionMigration>;
  readonly #definitions: ResourceClient<CustomResourceDefinition>;
  readonly #cached: () => Iterable<StorageVersionMigration>;
  readonly #writes: OwnWrites<StorageVersionMigration>;

  constructor(loop: KeyLoop, transport: Transport) {
    const { clients, clock } = loop.context;
    this.#transport = transport;
    this.#clock = clock;
    this.#client = clients.for(storageVersionMigrations);
    this.#definitions = clients.for(customResourceDefinitions);
    const migrations = loop.cache(storageVersionMigrations);
    this.#cached = () => migrations.cache.values();
    this.#writes = new OwnWrites(loop, migrations);
    loop.on(migrations, ({ object }) => [resourceKey(object)]);
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const waitMs = this.#writes.pendingMs(key);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    const step = planStep([...this.#cached()].filter((each) => resourceKey(each) === key));
    if (step === undefined) return undefined;
    const { migration } = step;
    switch (step.do) {
      case 'start': {
        const condition = crdCondition('running', migration.metadata.name ?? '');
        await this.#writeDefinition(key, () => ({ condition }), signal);
        await this.#write(key, migration, [runningCondition(this.#now())], signal);
        return undefined;
      }
      case 'migrate':
        return this.#migrate(key, migration, signal);
      case 'finish': {
        const { conditions } = migration.status;
        const hasSucceeded = conditionOf(conditions ?? [], 'Succeeded')?.status === 'True';
        await this.#writeDefinition(
          key,
          (definition) => {
            const isSame = isUnchangedSince(definition);
            const stored = (definition.spec.versions ?? []).find(({ storage }) => storage)?.name;
            return {
              condition: crdCondition(hasSucceeded ? (isSame ? 'updated' : 'changed') : 'failed', ''),
              ...(isSame && stored !== undefined && { storedVersions: [stored] }),
            };
          },
          signal,
        );
        await this.#write(key, migration, [finishedCondition(this.#now())], signal);
        return undefined;
      }
    }
  }

  async #migrate(
    key: ObjectKey,
    migration: StorageVersionMigration,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const { metadata, status } = migration;
    const { resources } = await discover(this.#transport, signal);
    const resource = resources.find(({ plural, group }) => `${plural}.${group}` === key);
    const fail = (message: string) =>
      this.#write(key, migration, [failedCondition(this.#now(), message)], signal);
    if (resource === undefined) {
      if (Date.parse(metadata.creationTimestamp ?? '') + discoveryMs > this.#clock.now()) {
        return { requeueAfterMs: discoveryRetryMs };
      }
      await fail('resource does not exist in discovery');
      return undefined;
    }
    if (!neededVerbs.every((verb) => resource.verbs.includes(verb))) {
      const what = `${resource.group}/${resource.version}, Resource=${resource.plural}`;
      const verbs = neededVerbs.join(' ');
      await fail(`resource ${JSON.stringify(what)} does not support discovery operations: [${verbs}]`);
      return undefined;
    }
    const objects = new ResourceClient(this.#transport, resource);
    if (status.resourceVersion === undefined) {
      const namespace = resource.namespaced ? emptyNamespace : '';
      const { metadata: list } = await objects.list({ namespace, limit: 1, signal });
      const started = { ...status, resourceVersion: list.resourceVersion ?? '' };
      await this.#write(key, { ...migration, status: started }, [], signal);
      return undefined;
    }
    await this.#rewrite(key, migration, resource, objects, status.resourceVersion, signal);
    return undefined;
  }

  /** Writes the objects that are as old as the beginning of the migration. */
  async #rewrite(
    key: ObjectKey,
    migration: StorageVersionMigration,
    resource: DiscoveredType,
    objects: ResourceClient<KubeObject>,
    since: string,
    signal: AbortSignal,
  ): Promise<void> {
    const old: { namespace: string; name: string; resourceVersion: string }[] = [];
    let total = 0;
    for await (const page of objects.pages({ signal })) {
      total += page.items.length;
      for (const { metadata } of page.items) {
        const { namespace = '', name = '', resourceVersion = '' } = metadata;
        if (compareResourceVersions(resourceVersion, since) <= 0)
          old.push({ namespace, name, resourceVersion });
      }
    }
    const progress = { remaining: old.length, total };
    const type = { apiVersion: apiVersionOf(resource), kind: resource.kind };
    for (const { namespace, name, resourceVersion } of old) {
      try {
        const patch = { ...type, metadata: { resourceVersion } };
        await objects.mergePatch(namespace, name, patch, { fieldManager: controllerName, signal });
      } catch (error) {
        // What was changed meanwhile is stored as it should be; what was deleted need not be.
        if (!isConflict(error) && !isNotFound(error)) {
          await this.#report(key, migration, progress, error, signal);
          return;
        }
      }
      progress.remaining--;
    }
    const time = this.#now();
    await this.#write(key, migration, [runningCondition(time, progress), succeededCondition(time)], signal);
  }

  /** @throws the error, where another try may succeed. */
  async #report(
    key: ObjectKey,
    migration: StorageVersionMigration,
    progress: Progress,
    error: unknown,
    signal: AbortSignal,
  ): Promise<void> {
    if (signal.aborted) throw error;
    const time = this.#now();
    const why = errorMessage(error);
    if (mayPass(error)) {
      await this.#write(key, migration, [runningCondition(time, progress, why)], signal);
      throw error;
    }
    const { remaining, total } = progress;
    const message = `${remaining}/${total} not yet migrated. migration encountered unhandled error: ${why}`;
    const conditions = [runningCondition(time, progress), failedCondition(time, message)];
    await this.#write(key, migration, conditions, signal);
  }

  async #write(
    key: ObjectKey,
    migration: StorageVersionMigration,
    conditions: readonly Condition[],
    signal: AbortSignal,
  ): Promise<void> {
    try {
      const changed = withConditions(migration, ...conditions);
      this.#writes.written(key, await this.#client.replaceStatus(changed, { signal }));
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  /** Says in the status of the resource's definition, if it has one, what happens to its objects. */
  async #writeDefinition(
    key: ObjectKey,
    planned: (definition: CustomResourceDefinition) => {
      readonly condition: Omit<Condition, 'lastTransitionTime'>;
      readonly storedVersions?: string[];
    },
    signal: AbortSignal,
  ): Promise<void> {
    try {
      const definition = await this.#definitions.get('', key, { signal });
      const { generation = 0 } = definition.metadata;
      const { condition, ...others } = planned(definition);
      const said = { ...condition, lastTransitionTime: this.#now(), observedGeneration: generation };
      const conditions = replacedCondition(definition.status.conditions ?? [], said);
      const status = { ...definition.status, conditions, ...others };
      await this.#definitions.replaceStatus({ ...definition, status }, { fieldManager: runnerName, signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  #now(): string {
    return formatTime(this.#clock.now());
  }
}

/** Whether the definition is still as it was when the migration began. */
function isUnchangedSince({ metadata, status }: CustomResourceDefinition): boolean {
  return conditionOf(status.conditions ?? [], 'StorageMigrating')?.observedGeneration === metadata.generation;
}

const passingCodes = new Set([429, 500, 503, 504]);

/** Errors after which another try may succeed (`isRetriableError`). */
function mayPass(error: unknown): boolean {
  return isUnreached(error) || (error instanceof StatusError && passingCodes.has(error.code));
}
