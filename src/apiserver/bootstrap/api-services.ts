import type { KubeObject } from '../../objects/meta.ts';
import { aggregatorGroup, builtInPriority, customPriority } from '../discovery/documents.ts';
import type { ServerCore } from '../rest/server-core.ts';
import { listPrefix, objectKey } from '../storage/storage.ts';
import { ensureObject } from './system-objects.ts';

const plural = 'apiservices';
const autoManagedLabel = 'kube-aggregator.kubernetes.io/automanaged';
/** For built-in group versions, whose APIServices are created at the start only. */
const manageOnStart = 'onstart';
/** For custom resources, whose APIServices are created and deleted with them. */
const manageContinuously = 'true';

interface GroupVersion {
  readonly group: string;
  readonly version: string;
  readonly custom: boolean;
}

/**
 * Keeps an APIService for every group version that this server serves (kube-aggregator `autoregister`,
 * `crdregistration_controller.go`); the aggregator's own group has none.
 */
export class ApiServices {
  readonly #core: ServerCore;
  /** Names of the APIServices of custom resources. */
  readonly #custom = new Set<string>();
  #reconciledVersion = -1;
  #queue: Promise<void> = Promise.resolve();

  constructor(core: ServerCore) {
    this.#core = core;
  }

  /** Creates missing ones, deletes those of deleted definitions, and follows changes. */
  async start(): Promise<void> {
    const { storage } = this.#core;
    const prefix = listPrefix(aggregatorGroup, plural);
    for (const { object } of storage.list(prefix).items) {
      if (object.metadata.labels?.[autoManagedLabel] === manageContinuously)
        this.#custom.add(object.metadata.name ?? '');
    }
    for (const served of this.#served()) if (!served.custom) await this.#ensure(served);
    await this.#reconcile();
    const definitions = listPrefix('apiextensions.k8s.io', 'customresourcedefinitions');
    storage.watch(definitions, storage.revision, () => this.#enqueue());
    storage.watch(prefix, storage.revision, ({ type, current }) => {
      if (type !== 'DELETED' || !this.#custom.delete(current.object.metadata.name ?? '')) return;
      this.#reconciledVersion = -1;
      this.#enqueue();
    });
  }

  #enqueue(): void {
    this.#queue = this.#queue
      .then(async () => this.#reconcile())
      .catch((error: unknown) => {
        this.#core.log.error({ err: error }, 'cannot update APIServices to match what is served');
      });
  }

  async #reconcile(): Promise<void> {
    const { resources, storage } = this.#core;
    if (this.#reconciledVersion === resources.version) return;
    this.#reconciledVersion = resources.version;
    const wanted = new Map(
      this.#served()
        .filter(({ custom }) => custom)
        .map((served) => [nameOf(served), served]),
    );
    for (const [name, served] of wanted) {
      if (this.#custom.has(name)) continue;
      await this.#ensure(served);
      this.#custom.add(name);
    }
    for (const name of [...this.#custom].filter((each) => !wanted.has(each))) {
      this.#custom.delete(name);
      const stored = storage.getForUpdate(objectKey(aggregatorGroup, plural, '', name));
      if (stored !== undefined) {
        await storage.commit([{ key: stored.key, expect: stored.revision, object: undefined }]);
      }
    }
  }

  #served(): GroupVersion[] {
    const found = new Map<string, GroupVersion>();
    for (const { definition, custom } of this.#core.resources.all()) {
      const { group, version } = definition;
      const name = nameOf(definition);
      if (group !== aggregatorGroup && !found.has(name)) found.set(name, { group, version, custom });
    }
    return [...found.values()];
  }

  async #ensure(served: GroupVersion): Promise<void> {
    const { group, version, custom } = served;
    const object: KubeObject & { spec: object } = {
      metadata: {
        name: nameOf(served),
        labels: { [autoManagedLabel]: custom ? manageContinuously : manageOnStart },
      },
      spec: {
        ...(group === '' ? {} : { group }),
        version,
        ...(custom ? customPriority : builtInPriority(group, version)),
      },
    };
    await ensureObject(this.#core, aggregatorGroup, plural, '', object);
  }
}

function nameOf({ group, version }: Pick<GroupVersion, 'group' | 'version'>): string {
  return `${version}.${group}`;
}
