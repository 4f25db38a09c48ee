import { invalidObject } from '../../../../../src/registry/validation/field-errors.ts';
import { validateCommonFields } from '../../../../../src/registry/generic/metadata.ts';
import { ServiceAllocators } from '../../../../../src/registry/core/service/allocators.ts';
import type { ClusterFamilies } from '../../../../../src/registry/core/service/families.ts';
import { createServiceStrategy } from '../../../../../src/registry/core/service/strategy.ts';
import type { Reservation, Strategy, StrategyContext } from '../../../../../src/registry/generic/strategy.ts';
import type { KubeObject, ObjectMeta } from '../../../../../src/objects/meta.ts';
import type { Service, ServiceSpec } from '../../../../../src/objects/types/core.generated.ts';
import { StatusError } from '../../../../../src/objects/status.ts';
import { alreadyExists } from '../../../../../src/objects/status.ts';

export const v4 = { families: ['IPv4'], cidrs: ['10.96.0.0/16'] } as const;
export const v6 = { families: ['IPv6'], cidrs: ['fd00:10:96::/112'] } as const;
export const dual46 = { families: ['IPv4', 'IPv6'], cidrs: ['10.97.0.0/16', 'fd00:10:97::/112'] } as const;
export const dual64 = { families: ['IPv6', 'IPv4'], cidrs: ['fd00:10:98::/112', '10.98.0.0/16'] } as const;

export interface Cluster {
  readonly families: ClusterFamilies;
  readonly cidrs: readonly string[];
}

/** Services and their strategy, with as much of the request pipeline as decides about them. One namespace, `ns`. */
export class ServiceWorld {
  readonly allocators: ServiceAllocators;
  readonly strategy: Strategy<Service>;
  readonly services = new Map<string, Service>();
  readonly addresses = new Map<string, KubeObject>();
  warnings: string[] = [];
  readonly #random: () => number;

  readonly #nodePorts: { readonly first: number; readonly last: number };

  constructor(cluster: Cluster, nodePortRange = { first: 30000, last: 32767 }, random = Math.random) {
    this.#nodePorts = nodePortRange;
    this.allocators = new ServiceAllocators({ families: cluster.families, nodePortRange });
    this.allocators.setServiceCIDR('kubernetes', cluster.cidrs, true);
    this.strategy = createServiceStrategy(this.allocators);
    this.#random = random;
  }

  get(name: string): Service {
    const service = this.services.get(name);
    if (service === undefined) throw new Error(`no service ${name}`);
    return service;
  }

  create(
    name: string,
    spec: ServiceSpec = { ports: [{ port: 80 }] },
    options: { dryRun?: boolean; metadata?: ObjectMeta } = {},
  ): Service {
    const service: Service = structuredClone({
      metadata: { name, namespace: 'ns', ...options.metadata },
      spec,
      status: {},
    });
    const context = this.#context(options.dryRun ?? false);
    this.strategy.setDefaults(service);
    const reservation = this.strategy.beginCreate?.(service, context);
    return this.#finish(reservation, () => {
      this.strategy.prepareForCreate(service, context);
      refuse(service, this.strategy.validateCreate(service, context));
      if (this.services.has(name)) throw alreadyExists({ group: '', resource: 'services' }, name);
      this.warnings = this.strategy.warningsOnCreate?.(service) ?? [];
      return this.#store(service, context, reservation);
    });
  }

  /** A PUT of a manifest: what it leaves out is unset. */
  put(name: string, spec: ServiceSpec, options: { dryRun?: boolean; metadata?: ObjectMeta } = {}): Service {
    const { metadata } = this.get(name);
    const { labels: _l, annotations: _a, ...system } = metadata;
    return this.#update(
      structuredClone({ metadata: { ...system, ...options.metadata }, spec, status: {} }),
      options.dryRun ?? false,
    );
  }

  /** A patch of single fields of the spec; undefined removes one. */
  patch(
    name: string,
    changes: { [K in keyof ServiceSpec]?: ServiceSpec[K] | undefined },
    dryRun = false,
  ): Service {
    const service = structuredClone(this.get(name));
    const spec: Record<string, unknown> = { ...service.spec, ...structuredClone(changes) };
    for (const key of Object.keys(spec)) if (spec[key] === undefined) Reflect.deleteProperty(spec, key);
    service.spec = spec;
    return this.#update(service, dryRun);
  }

  /** A write to `/status`. */
  putStatus(name: string, status: Service['status'], spec: ServiceSpec = {}): Service {
    const old = this.get(name);
    const service: Service = structuredClone({ metadata: old.metadata, spec, status });
    const context = this.#context(false);
    const rules = this.strategy.status;
    this.strategy.setDefaults(service);
    rules?.prepareForUpdate(service, old, context);
    const errors = validateCommonFields(service.metadata, old.metadata, true);
    refuse(service, [...errors, ...(rules?.validateUpdate(service, old, context) ?? [])]);
    this.warnings = rules?.warningsOnUpdate?.(service, old) ?? [];
    return this.#store(service, context, undefined);
  }

  delete(name: string, dryRun = false): Reservation | undefined {
    const context = this.#context(dryRun);
    const reservation = this.strategy.beginDelete?.(this.get(name), context);
    if (dryRun) reservation?.rollback();
    else {
      this.services.delete(name);
      this.#apply(reservation);
    }
    return reservation;
  }

  /** Every number that the node port allocator holds. */
  ports(): number[] {
    const { first, last } = this.#nodePorts;
    const every = Array.from({ length: last - first + 1 }, (_, i) => first + i);
    return every.filter((port) => this.allocators.nodePorts.has(port));
  }

  #update(service: Service, dryRun: boolean): Service {
    const old = this.get(service.metadata.name ?? '');
    const context = this.#context(dryRun);
    this.strategy.setDefaults(service);
    const reservation = this.strategy.beginUpdate?.(service, old, context);
    return this.#finish(reservation, () => {
      this.strategy.prepareForUpdate(service, old, context);
      const errors = validateCommonFields(service.metadata, old.metadata, true);
      refuse(service, [...errors, ...this.strategy.validateUpdate(service, old, context)]);
      this.warnings = this.strategy.warningsOnUpdate?.(service, old) ?? [];
      return this.#store(service, context, reservation);
    });
  }

  #finish(reservation: Reservation | undefined, steps: () => Service): Service {
    try {
      return steps();
    } catch (error) {
      reservation?.rollback();
      throw error;
    }
  }

  #store(service: Service, context: StrategyContext, reservation: Reservation | undefined): Service {
    if (context.dryRun) reservation?.rollback();
    else {
      this.services.set(service.metadata.name ?? '', deepFreeze(structuredClone(service)));
      this.#apply(reservation);
    }
    return this.strategy.decorate?.(service) ?? service;
  }

  #apply(reservation: Reservation | undefined): void {
    for (const { name, object } of reservation?.creates ?? []) {
      if (this.addresses.has(name)) throw new Error(`address ${name} given twice`);
      this.addresses.set(name, object);
    }
    for (const { plural, name } of reservation?.deletes ?? []) {
      if (plural === 'ipaddresses') this.addresses.delete(name);
    }
    reservation?.commit();
  }

  #context(dryRun: boolean): StrategyContext {
    return {
      now: '2026-01-01T00:00:00Z',
      random: this.#random,
      dryRun,
      cluster: { list: () => [], get: () => undefined },
    };
  }
}

/** The answer to a request that fails: its code, and each cause as `field: text`, or the message if it has none. */
export function failure(request: () => unknown): { code: number; causes: string[] } {
  try {
    request();
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    const causes = error.details?.causes?.filter(({ field }) => field !== undefined) ?? [];
    const texts = causes.map(({ field = '', message = '' }) => `${field}: ${message}`);
    return { code: error.code, causes: texts.length > 0 ? texts : [error.message] };
  }
  throw new Error('the request did not fail');
}

function refuse(service: Service, errors: Parameters<typeof invalidObject>[1]): void {
  if (errors.length > 0) {
    throw invalidObject({ group: '', kind: 'Service', name: service.metadata.name ?? '' }, errors);
  }
}

/** Stored objects are frozen: a change throws. */
function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    Object.freeze(value);
    Object.values(value).forEach(deepFreeze);
  }
  return value;
}
