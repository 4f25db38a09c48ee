import { Cache, type CacheHandler, type IndexFunction } from '../../client/informers/cache.ts';
import type { Informer, Informers } from '../../client/informers/informer.ts';
import { resourceName, type ResourceType } from '../../client/resources.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type { RequestSettings } from '../../controllers/load-balancer/request.ts';
import { TimeSlice } from '../../telemetry/time-slice.ts';
import { ClusterCaches } from '../caches.ts';
import { RowTables } from '../row-tables.ts';

/** The objects of one kind as they were. */
export interface PastObjects {
  /** Their informer of now. */
  readonly of: Informer<KubeObject>;
  readonly objects: readonly KubeObject[];
}

/** An informer whose objects do not change, once they have been added. */
class StillInformer<T extends KubeObject> implements Informer<T> {
  readonly resource: ResourceType<T>;
  readonly cache = new Cache<T>();
  readonly isListing = false;
  readonly lastEventAt = undefined;
  readonly syncProblem: string | undefined;
  readonly #handlers = new Set<CacheHandler<T>>();
  #isFilled = false;

  constructor({ resource, syncProblem }: Pick<Informer<T>, 'resource' | 'syncProblem'>) {
    this.resource = resource;
    this.syncProblem = syncProblem;
  }

  get hasSynced(): boolean {
    return this.#isFilled;
  }

  synced(): Promise<boolean> {
    return Promise.resolve(this.#isFilled);
  }

  addHandler(handler: CacheHandler<T>): () => void {
    this.#handlers.add(handler);
    for (const object of this.cache.values()) handler.added?.(object, true);
    return () => this.#handlers.delete(handler);
  }

  addIndex(name: string, indexFunction: IndexFunction<T>): void {
    this.cache.addIndex(name, indexFunction);
  }

  add(object: T): void {
    this.cache.set(object);
    for (const handler of this.#handlers) handler.added?.(object, true);
  }

  filled(): void {
    this.#isFilled = true;
  }
}

class StillInformers implements Informers {
  readonly #informers: ReadonlyMap<string, StillInformer<KubeObject>>;

  constructor(informers: readonly StillInformer<KubeObject>[]) {
    this.#informers = new Map(informers.map((each) => [resourceName(each.resource), each]));
  }

  informer<T extends KubeObject>(resource: ResourceType<T>): Informer<T> {
    const found = this.#informers.get(resourceName(resource));
    if (found === undefined || !isInformerOf(found, resource))
      throw new Error(`nothing is known of ${resourceName(resource)} as it was`);
    return found;
  }

  present(name: string): Informer<KubeObject> | undefined {
    return this.#informers.get(name);
  }
}

function isInformerOf<T extends KubeObject>(
  informer: Informer<KubeObject>,
  resource: ResourceType<T>,
): informer is Informer<T> {
  return informer.resource === resource;
}

/** A cluster as it was. */
export interface Past {
  /** Milliseconds since 1970. */
  readonly atMs: number;
  readonly caches: ClusterCaches;
  readonly tables: RowTables;
}

/** As many objects are added between two looks at their rows. */
const objectsTogether = 500;

/** A cluster of objects as they were, made in slices: tens of thousands of them do not hold the event loop. */
export async function pastOf(
  objects: readonly PastObjects[],
  atMs: number,
  isWhole: boolean,
  settings: RequestSettings,
): Promise<Past> {
  const informers = objects.map(({ of, objects: added }) => ({ informer: new StillInformer(of), added }));
  const caches = new ClusterCaches(new StillInformers(informers.map(({ informer }) => informer)), isWhole);
  const tables = new RowTables(
    caches,
    settings,
    () => atMs,
    () => undefined,
  );
  const slice = new TimeSlice();
  let together = 0;
  const fill = async ({ informer, added }: (typeof informers)[number]): Promise<void> => {
    for (const object of added) {
      informer.add(object);
      if (++together % objectsTogether === 0) tables.flush();
      if (slice.isOver) await slice.yield();
    }
    informer.filled();
  };
  // Services come last: why one has no endpoint is known once all else is there, and each is looked at once.
  const isOfServices = ({ informer }: (typeof informers)[number]): boolean =>
    informer.resource.kind === 'Service';
  const others = informers.filter((each) => !isOfServices(each));
  for (const each of [...others, ...informers.filter(isOfServices)]) await fill(each);
  tables.flush();
  return { atMs, caches, tables };
}
