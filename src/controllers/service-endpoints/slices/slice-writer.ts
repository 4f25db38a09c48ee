import { isNotFound, isNamespaceTerminating } from '../../../client/errors.ts';
import type { ResourceClient } from '../../../client/resource-client.ts';
import type { EndpointSlice, EndpointPort } from '../../../objects/types/discovery.generated.ts';
import { joinKey, keyOf, type ObjectKey } from '../../../objects/meta.ts';
import type { Clock } from '../../../client/clock.ts';
import type { Informer } from '../../../client/informers/informer.ts';
import { endpointSlices } from '../../../client/resources.ts';
import type { ControllerContext } from '../../../runtime/context.ts';
import type { Change } from '../../../runtime/key-loop.ts';
import type { OwnWrites } from '../../../runtime/own-writes.ts';
import type { IPFamily } from '../../../objects/address.ts';
import type { Service } from '../../../objects/types/core.generated.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { isHeadless } from '../service.ts';
import { headlessLabel } from '../../../network/forwarding/endpoints.ts';
import { serviceNameLabel } from '../../../objects/endpoints.ts';

/** The writes of a plan. */
export interface SliceWrites {
  readonly create: readonly EndpointSlice[];
  readonly update: readonly EndpointSlice[];
  readonly delete: readonly EndpointSlice[];
}

/** The number of successful writes, for the log. */
export interface WriteCounts {
  created: number;
  updated: number;
  deleted: number;
}

/** A write that failed. */
export interface WriteFailure {
  /** The message up to `for` the owner: `failed to update web-abcde EndpointSlice`. */
  readonly attempt: string;
  readonly error: unknown;
}

/** Milliseconds after the last own write in which a slice that other labels hide is waited for. */
const hiddenSliceMs = 60_000;

/** Sends the writes of a plan one by one and records each as an own write. */
export class SliceWriter {
  readonly #client: ResourceClient<EndpointSlice>;
  readonly #writes: OwnWrites<EndpointSlice>;
  readonly #slices: Informer<EndpointSlice>;
  readonly #clock: Clock;
  /** What was written for a Service or Endpoints object, by its key: the keys of slices by their uids. */
  readonly #written = new Map<
    ObjectKey,
    { readonly ownerUid: string; readonly slices: Map<string, ObjectKey>; atMs: number }
  >();

  constructor(
    { clients, clock }: Pick<ControllerContext, 'clients' | 'clock'>,
    slices: Informer<EndpointSlice>,
    writes: OwnWrites<EndpointSlice>,
  ) {
    this.#client = clients.for(endpointSlices);
    this.#slices = slices;
    this.#clock = clock;
    this.#writes = writes;
  }

  /**
   * Milliseconds to wait before the next plan: a slice that was written for the owner exists, and is not among its own
   * ones, because another client has given it other labels. kube-controller-manager makes no other slice then
   * (k8s.io/endpointslice/util `StaleSlices`); here it counts as another's after a minute.
   *
   * @param own the slices that the owner has by the cache.
   */
  hiddenMs(owner: ObjectKey, ownerUid: string, own: readonly EndpointSlice[]): number {
    const written = this.#written.get(owner);
    if (written === undefined) return 0;
    const leftMs = written.atMs + hiddenSliceMs - this.#clock.monotonic();
    if (written.ownerUid !== ownerUid || leftMs <= 0) {
      this.#written.delete(owner);
      return 0;
    }
    const shown = new Set(own.map(({ metadata }) => metadata.uid));
    for (const [uid, key] of written.slices) {
      if (shown.has(uid)) continue;
      if (this.#slices.cache.get(key)?.metadata.uid === uid) return leftMs;
      written.slices.delete(uid);
    }
    return 0;
  }

  forget(owner: ObjectKey): void {
    this.#written.delete(owner);
  }

  #note(owner: ObjectKey, slice: EndpointSlice): void {
    this.#writes.written(owner, slice);
    const { uid, ownerReferences = [] } = slice.metadata;
    const ownerUid = ownerReferences.find(({ controller }) => controller === true)?.uid;
    if (uid === undefined || ownerUid === undefined) return;
    const before = this.#written.get(owner);
    const slices = before?.ownerUid === ownerUid ? before.slices : new Map<string, ObjectKey>();
    slices.set(uid, keyOf(slice));
    this.#written.set(owner, { ownerUid, slices, atMs: this.#clock.monotonic() });
  }

  /**
   * Creates, updates, then deletes, one address type after the other. The writes of an address type end at the first
   * failure, or without one when the namespace is terminating. Those of the other types are still sent, so that slices
   * of a family that a Service no longer has are deleted even where no creates are allowed.
   */
  async write(
    writes: SliceWrites,
    owner: ObjectKey,
    signal: AbortSignal,
  ): Promise<{ counts: WriteCounts; failures: WriteFailure[] }> {
    const counts: WriteCounts = { created: 0, updated: 0, deleted: 0 };
    const failures: WriteFailure[] = [];
    const types = [...writes.create, ...writes.update, ...writes.delete].map(
      ({ addressType }) => addressType,
    );
    for (const type of new Set(types)) {
      const isOfType = ({ addressType }: EndpointSlice): boolean => addressType === type;
      const failure = await this.#writeType(
        {
          create: writes.create.filter(isOfType),
          update: writes.update.filter(isOfType),
          delete: writes.delete.filter(isOfType),
        },
        owner,
        counts,
        signal,
      );
      if (failure !== undefined) failures.push(failure);
    }
    return { counts, failures };
  }

  async #writeType(
    writes: SliceWrites,
    owner: ObjectKey,
    counts: WriteCounts,
    signal: AbortSignal,
  ): Promise<WriteFailure | undefined> {
    let attempt = '';
    try {
      for (const slice of writes.create) {
        attempt = 'failed to create EndpointSlice';
        this.#note(owner, await this.#client.create(slice, { signal }));
        counts.created++;
      }
      for (const slice of writes.update) {
        attempt = `failed to update ${slice.metadata.name ?? ''} EndpointSlice`;
        this.#note(owner, await this.#client.replace(slice, { signal }));
        counts.updated++;
      }
      for (const slice of writes.delete) {
        attempt = `failed to delete ${slice.metadata.name ?? ''} EndpointSlice`;
        await this.#delete(slice, owner, signal);
        counts.deleted++;
      }
    } catch (error) {
      return isNamespaceTerminating(error) ? undefined : { attempt, error };
    }
    return undefined;
  }

  async #delete(slice: EndpointSlice, owner: ObjectKey, signal: AbortSignal): Promise<void> {
    const { namespace = '', name = '', uid } = slice.metadata;
    this.#writes.deleting(owner, slice);
    if (uid !== undefined) this.#written.get(owner)?.slices.delete(uid);
    try {
      const preconditions = uid === undefined ? {} : { preconditions: { uid } };
      await this.#client.delete(namespace, name, { signal, ...preconditions });
    } catch (error) {
      if (isNotFound(error)) return;
      this.#writes.notDeleted(slice);
      throw error;
    }
  }
}

/** Labels, owner and name of the EndpointSlices of a Service (k8s.io/endpointslice, `utils.go`). Pure. */

/** The label with the name of the controller that manages a slice. */
export const managedByLabel = 'endpointslice.kubernetes.io/managed-by';
/** The value of {@link managedByLabel} on slices of the endpointslice controller. */
export const endpointSliceController = 'endpointslice-controller.k8s.io';

const reserved: readonly string[] = [serviceNameLabel, managedByLabel, headlessLabel];

/** The labels of a Service's slices: its own, except for three keys that the controller sets. */
export function sliceLabels(service: Service): Record<string, string> {
  return {
    ...unreserved(service.metadata.labels),
    ...(isHeadless(service) ? { [headlessLabel]: '' } : {}),
    [serviceNameLabel]: service.metadata.name ?? '',
    [managedByLabel]: endpointSliceController,
  };
}

/**
 * True when the labels of a slice differ from the wanted ones outside the reserved keys. Differences in reserved keys
 * alone cause no write, as in kube-controller-manager.
 */
export function labelsDiffer(slice: EndpointSlice, wanted: Readonly<Record<string, string>>): boolean {
  return !jsonEqual(unreserved(slice.metadata.labels), unreserved(wanted));
}

function unreserved(labels: Readonly<Record<string, string>> | undefined): Record<string, string> {
  return Object.fromEntries(Object.entries(labels ?? {}).filter(([key]) => !reserved.includes(key)));
}

/** True when a slice has this Service, by uid, as an owner. */
export function isOwnedBy(slice: EndpointSlice, service: Service): boolean {
  return (slice.metadata.ownerReferences ?? []).some(
    (owner) => owner.uid === service.metadata.uid && owner.kind === 'Service' && owner.apiVersion === 'v1',
  );
}

/** An empty slice, ready to be filled and created. */
export function newSlice(service: Service, family: IPFamily, ports: readonly EndpointPort[]): EndpointSlice {
  const { name = '', namespace = '', uid = '' } = service.metadata;
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      generateName: `${name}-`,
      namespace,
      labels: sliceLabels(service),
      ownerReferences: [
        { apiVersion: 'v1', kind: 'Service', name, uid, controller: true, blockOwnerDeletion: true },
      ],
    },
    addressType: family,
    endpoints: null,
    ports: ports.length === 0 ? null : [...ports],
  };
}

/**
 * The Services whose slices another client has changed: the content, the Service, or the manager. The event of an own
 * write is none.
 *
 * @param managedBy the value of the managed-by label on the controller's own slices.
 */
export function servicesOfForeignChange(
  change: Change<EndpointSlice>,
  managedBy: string,
  writes: OwnWrites<EndpointSlice>,
): readonly ObjectKey[] {
  const { object: slice } = change;
  const isOurs = ({ metadata }: EndpointSlice): boolean => metadata.labels?.[managedByLabel] === managedBy;
  if (change.kind === 'updated') {
    const { old } = change;
    // Content and labels count, annotations and owners do not (recorded: `mirror-slice-labels-edited`).
    if (slice.metadata.generation === old.metadata.generation && slice.metadata.uid === old.metadata.uid) {
      return [];
    }
    if (serviceOf(slice) !== serviceOf(old)) return [slice, old].flatMap((each) => serviceOf(each) ?? []);
    if (isOurs(slice) !== isOurs(old)) return [serviceOf(slice) ?? []].flat();
  }
  return isOurs(slice) && !writes.isEcho(slice) ? [serviceOf(slice) ?? []].flat() : [];
}

/** The key of the Service that a slice names. */
function serviceOf({ metadata }: EndpointSlice): ObjectKey | undefined {
  const name = metadata.labels?.[serviceNameLabel];
  return name === undefined || name === '' ? undefined : joinKey(metadata.namespace ?? '', name);
}
