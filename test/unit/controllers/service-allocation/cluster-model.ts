import { AllocationState } from '../../../../src/controllers/service-allocation/allocation-state.ts';
import { planService, type ServicePlan } from '../../../../src/controllers/service-allocation/plan.ts';
import {
  claimAnnotation,
  formatClaim,
  specValues,
  viewOf,
} from '../../../../src/controllers/service-allocation/plan-view.ts';
import { isRecord, type JsonRecord } from '../../../../src/objects/json.ts';
import { keyOf } from '../../../../src/objects/key.ts';
import type { Service, ServiceSpec } from '../../../../src/objects/core.generated.ts';

/** One state of one Service; without an object: it was deleted. */
interface Change {
  readonly key: string;
  readonly service: Service | undefined;
}

/** A patch under way. It changes its Service only if that is still at the revision which the patch was made for. */
interface Patch {
  readonly key: string;
  readonly resourceVersion: string;
  readonly patch: JsonRecord;
}

/** An API server that stores Services and allocates nothing, its history, and a network that keeps every patch. */
export class ClusterModel {
  readonly services = new Map<string, Service>();
  readonly history: Change[] = [];
  readonly network: Patch[] = [];
  /** value → the Services that got it by a controller's patch and still have it. */
  readonly given = new Map<string, Set<string>>();
  #serial = 0;

  create(name: string, spec: ServiceSpec): void {
    if (this.services.has(`default/${name}`)) return;
    const serial = ++this.#serial;
    const creationTimestamp = `2026-01-01T00:00:${String(serial % 60).padStart(2, '0')}Z`;
    this.#store({
      metadata: { name, namespace: 'default', uid: `uid-${serial}`, creationTimestamp },
      spec,
      status: {},
    });
  }

  delete(name: string): void {
    const key = `default/${name}`;
    if (!this.services.delete(key)) return;
    for (const holders of this.given.values()) holders.delete(key);
    this.history.push({ key, service: undefined });
  }

  change(name: string, patch: JsonRecord): void {
    const service = this.services.get(`default/${name}`);
    if (service !== undefined) this.#store(merged(service, patch));
  }

  /** Delivers a patch, which stays in the network: it may come again. True when it changed something. */
  deliver(index: number): boolean {
    const patch = this.network[index];
    const service = patch === undefined ? undefined : this.services.get(patch.key);
    if (patch === undefined || service?.metadata.resourceVersion !== patch.resourceVersion) return false;
    const before = specValues(viewOf(service));
    const after = merged(service, patch.patch);
    this.#store(after);
    for (const value of specValues(viewOf(after))) {
      if (before.has(value)) continue;
      const holders = this.given.get(value) ?? new Set();
      this.given.set(value, holders.add(patch.key));
    }
    return true;
  }

  #store(service: Service): void {
    const key = keyOf(service);
    const resourceVersion = String(this.history.length + 1);
    const stored = { ...service, metadata: { ...service.metadata, resourceVersion } };
    this.services.set(key, stored);
    this.history.push({ key, service: stored });
    // What a Service no longer has is free for others.
    const values = specValues(viewOf(stored));
    for (const [value, holders] of this.given) if (!values.has(value)) holders.delete(key);
  }
}

/** A controller with its cache, which shows the history up to some point. */
export class InstanceModel {
  readonly #cluster: ClusterModel;
  readonly #random: () => number;
  readonly #cache = new Map<string, Service>();
  #allocations = InstanceModel.#newBooks();
  #seen = 0;

  constructor(cluster: ClusterModel, random: () => number) {
    this.#cluster = cluster;
    this.#random = random;
  }

  static #newBooks(): AllocationState {
    const allocations = new AllocationState({ first: 30_000, last: 30_005 });
    allocations.setCidrs([{ text: '10.0.0.0/28', ready: true }]);
    return allocations;
  }

  /** Sees so many more changes. */
  advance(count: number): void {
    const end = Math.min(this.#seen + count, this.#cluster.history.length);
    while (this.#seen < end) {
      const change = this.#cluster.history[this.#seen++];
      if (change === undefined) continue;
      if (change.service === undefined) {
        this.#cache.delete(change.key);
        this.#allocations.delete(change.key);
      } else {
        this.#cache.set(change.key, change.service);
        this.#allocations.set(viewOf(change.service), change.service.metadata.resourceVersion ?? '');
      }
    }
  }

  /** Begins anew, with a list of some earlier or present revision. @param behind revisions, from 0. */
  restart(behind: number): void {
    this.#cache.clear();
    this.#allocations = InstanceModel.#newBooks();
    this.#seen = 0;
    this.advance(Math.max(0, this.#cluster.history.length - behind));
  }

  /** Plans a Service and sends the patch off. */
  reconcile(name: string): ServicePlan | undefined {
    const service = this.#cache.get(`default/${name}`);
    if (service === undefined) return undefined;
    this.#allocations.putBack(keyOf(service));
    const plan = planService({
      service,
      allocations: this.#allocations,
      cluster: ['IPv4'],
      ownerOf: () => undefined,
      random: this.#random,
    });
    const send = (patch: JsonRecord): void => {
      const { resourceVersion = '' } = service.metadata;
      this.#cluster.network.push({ key: keyOf(service), resourceVersion, patch });
    };
    const claim = (value: string | null): JsonRecord => ({
      metadata: { annotations: { [claimAnnotation]: value } },
    });
    if (plan.step.do === 'claim') send(claim(formatClaim(plan.step.claim)));
    else if (plan.step.do === 'retreat') send(claim(null));
    else if (plan.step.do === 'write') send({ ...claim(null), spec: plan.step.spec });
    return plan;
  }
}

/** RFC 7386 on a Service. */
function merged(service: Service, patch: JsonRecord): Service {
  const { metadata, spec } = patch;
  return {
    ...service,
    metadata: {
      ...service.metadata,
      ...mergeRecords({ ...service.metadata }, isRecord(metadata) ? metadata : {}),
    },
    spec: { ...service.spec, ...mergeRecords({ ...service.spec }, isRecord(spec) ? spec : {}) },
  };
}

function mergeRecords(target: JsonRecord, patch: JsonRecord): JsonRecord {
  for (const [name, value] of Object.entries(patch)) {
    const present = target[name];
    if (value === null) target[name] = undefined;
    else if (isRecord(value)) target[name] = mergeRecords(isRecord(present) ? { ...present } : {}, value);
    else target[name] = value;
  }
  return target;
}
