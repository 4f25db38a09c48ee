import { AllocationState } from '../../../../src/controllers/service-allocation/allocation-state.ts';
import { planAllocation, type AllocationPlan } from '../../../../src/controllers/service-allocation/plan.ts';
import {
  claimAnnotation,
  formatClaim,
  specValues,
  viewOf,
} from '../../../../src/controllers/service-allocation/plan-view.ts';
import { isRecord, type JsonRecord } from '../../../../src/objects/json.ts';
import { keyOf } from '../../../../src/objects/meta.ts';
import type { Service, ServiceSpec } from '../../../../src/objects/types/core.generated.ts';

/** One version of one Service; undefined: it was deleted. */
interface Change {
  readonly key: string;
  readonly service: Service | undefined;
}

/** A patch in the network. It applies only to the version of the Service for which it was planned. */
interface Patch {
  readonly key: string;
  readonly resourceVersion: string;
  readonly patch: JsonRecord;
}

/** An API server that allocates nothing, its history, and a network that may deliver every patch again. */
export class ClusterModel {
  readonly services = new Map<string, Service>();
  readonly history: Change[] = [];
  readonly network: Patch[] = [];
  /** value → the Services that got it by a controller's patch and still have it. */
  readonly allocated = new Map<string, Set<string>>();
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
    for (const keys of this.allocated.values()) keys.delete(key);
    this.history.push({ key, service: undefined });
  }

  change(name: string, patch: JsonRecord): void {
    const service = this.services.get(`default/${name}`);
    if (service !== undefined) this.#store(merged(service, patch));
  }

  /** Delivers a patch, which stays in the network. True if it was applied. */
  deliver(index: number): boolean {
    const patch = this.network[index];
    const service = patch === undefined ? undefined : this.services.get(patch.key);
    if (patch === undefined || service?.metadata.resourceVersion !== patch.resourceVersion) return false;
    const before = specValues(viewOf(service));
    const after = merged(service, patch.patch);
    this.#store(after);
    for (const value of specValues(viewOf(after))) {
      if (before.has(value)) continue;
      const keys = this.allocated.get(value) ?? new Set();
      this.allocated.set(value, keys.add(patch.key));
    }
    return true;
  }

  #store(service: Service): void {
    const key = keyOf(service);
    const resourceVersion = String(this.history.length + 1);
    const stored = { ...service, metadata: { ...service.metadata, resourceVersion } };
    this.services.set(key, stored);
    this.history.push({ key, service: stored });
    // Other Services may get the values that this one no longer has.
    const values = specValues(viewOf(stored));
    for (const [value, keys] of this.allocated) if (!values.has(value)) keys.delete(key);
  }
}

/** A controller whose cache shows the history up to some point. */
export class InstanceModel {
  readonly #cluster: ClusterModel;
  readonly #random: () => number;
  readonly #cache = new Map<string, Service>();
  #allocations = InstanceModel.#newAllocations();
  #seen = 0;

  constructor(cluster: ClusterModel, random: () => number) {
    this.#cluster = cluster;
    this.#random = random;
  }

  static #newAllocations(): AllocationState {
    const allocations = new AllocationState({ first: 30_000, last: 30_005 });
    allocations.setCidrs([{ text: '10.0.0.0/28', ready: true }]);
    return allocations;
  }

  /** Advances the cache by this many changes. */
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

  /** Restarts with a list of an older or the latest revision. @param behind number of revisions, from 0. */
  restart(behind: number): void {
    this.#cache.clear();
    this.#allocations = InstanceModel.#newAllocations();
    this.#seen = 0;
    this.advance(Math.max(0, this.#cluster.history.length - behind));
  }

  /** Plans a Service and sends the patch. */
  reconcile(name: string): AllocationPlan | undefined {
    const service = this.#cache.get(`default/${name}`);
    if (service === undefined) return undefined;
    this.#allocations.releaseReserved(keyOf(service));
    const plan = planAllocation({
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
