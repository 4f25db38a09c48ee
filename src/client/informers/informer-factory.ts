import type { Logger } from 'pino';
import type { KubeObject } from '../../objects/meta.ts';
import type { HealthCheck } from '../../telemetry/health.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { Clock, Random } from '../clock.ts';
import type { Informer, InformerOptions, Informers } from './informer.ts';
import { Reflector } from './reflector.ts';
import { resourceName, type ResourceType } from '../resources.ts';
import { SharedInformer } from './shared-informer.ts';
import type { Transport } from '../transport.ts';

export interface InformerFactoryOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics?: Metrics;
  /** Only this namespace of namespaced resources; absent: all. */
  readonly namespace?: string;
  /** Which objects the server leaves out, by {@link resourceName}: one that ceases to match looks deleted. */
  readonly labelSelectors?: Readonly<Record<string, string>>;
  /** The one namespace whose objects are read, of some resources by {@link resourceName}. */
  readonly namespaces?: Readonly<Record<string, string>>;
  /** Objects per page of a list; default 500. */
  readonly pageSize?: number;
}

/** An informer of any object type, as the factory holds it. */
interface Running {
  readonly informer: Informer<KubeObject>;
  run(signal: AbortSignal): Promise<void>;
  /** Adds a user of the same resource: whole objects are kept unless its `transform` is that of all others. */
  share(transform: unknown): void;
}

/**
 * Milliseconds without a sign of life after which a cache counts as stale: two lost bookmarks and one or two failed
 * attempts.
 */
const staleAfter = 300_000;

/** Creates informers, one per resource, and keeps them in sync with the server. */
export class InformerFactory implements Informers {
  readonly #options: InformerFactoryOptions;
  readonly #informers = new Map<string, Running>();
  readonly #finished: Promise<void>[] = [];
  #signal: AbortSignal | undefined;

  constructor(options: InformerFactoryOptions) {
    this.#options = options;
  }

  informer<T extends KubeObject>(resource: ResourceType<T>, options: InformerOptions<T> = {}): Informer<T> {
    const name = resourceName(resource);
    const present = this.#informers.get(name);
    if (present === undefined) return this.#make(name, resource, options);
    const { informer } = present;
    if (!isInformerOf(informer, resource)) throw new Error(`${name} is defined twice, in different ways`);
    present.share(options.transform);
    return informer;
  }

  present(name: string): Informer<KubeObject> | undefined {
    return this.#informers.get(name)?.informer;
  }

  /** Starts all informers, including those that are requested later. Call once. */
  start(signal: AbortSignal): void {
    this.#signal = signal;
    for (const running of this.#informers.values()) this.#finished.push(running.run(signal));
  }

  /** Resolves when all informers have ended, after the signal of {@link start} aborted. */
  async finished(): Promise<void> {
    await Promise.all(this.#finished);
  }

  /** Not ready before every cache has synced, nor while one had no sign of life for five minutes. */
  healthChecks(): readonly HealthCheck[] {
    const { clock } = this.#options;
    const name = (bad: (informer: Informer<KubeObject>) => boolean): string =>
      [...this.#informers]
        .flatMap(([resource, { informer }]) => {
          if (!bad(informer)) return [];
          return informer.syncProblem === undefined ? [resource] : [`${resource} (${informer.syncProblem})`];
        })
        .join(', ');
    return [
      {
        name: 'informer-sync',
        check: () => {
          const unsynced = name((informer) => !informer.hasSynced);
          return unsynced === '' ? undefined : `not synced yet: ${unsynced}`;
        },
      },
      {
        name: 'informer-age',
        check: () => {
          const oldest = clock.monotonic() - staleAfter;
          const stale = name(({ lastEventAt = oldest }) => lastEventAt < oldest);
          return stale === '' ? undefined : `no sign of life from the API server: ${stale}`;
        },
      },
    ];
  }

  #make<T extends KubeObject>(
    name: string,
    resource: ResourceType<T>,
    options: InformerOptions<T>,
  ): Informer<T> {
    const { transport, clock, random, log, metrics, labelSelectors, namespaces, pageSize } = this.#options;
    const namespace = namespaces?.[name] ?? this.#options.namespace;
    const labelSelector = labelSelectors?.[name];
    const measured = metrics === undefined ? {} : { metrics };
    let { transform } = options;
    const informer = new SharedInformer({
      resource,
      clock,
      log,
      ...measured,
      transform: (object) => transform?.(object) ?? object,
    });
    const reflector = new Reflector({
      transport,
      resource,
      sink: informer,
      clock,
      random,
      log,
      ...measured,
      ...(namespace === undefined ? {} : { namespace }),
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(pageSize === undefined ? {} : { pageSize }),
    });
    const running: Running = {
      informer,
      run: (signal) => reflector.run(signal),
      share: (wanted) => {
        if (transform === undefined || transform === wanted) return;
        if (this.#signal !== undefined)
          throw new Error(`the cache of ${name} keeps only a part of its objects`);
        transform = undefined;
      },
    };
    this.#informers.set(name, running);
    if (this.#signal !== undefined) this.#finished.push(running.run(this.#signal));
    return informer;
  }
}

function isInformerOf<T extends KubeObject>(
  informer: Informer<KubeObject>,
  resource: ResourceType<T>,
): informer is Informer<T> {
  return informer.resource === resource;
}
