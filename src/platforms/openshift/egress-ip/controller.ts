import type { EventReason } from '../../../objects/reasons.ts';
import { isNotFound, isConflict } from '../../../client/errors.ts';
import type { Informer } from '../../../client/informers/informer.ts';
import type { ResourceClient } from '../../../client/resource-client.ts';
import { parseAddress } from '../../../objects/address.ts';
import type { CloudPrivateIPConfig, EgressIP, EgressIPItem } from '../../../objects/types/openshift.ts';
import type { ControllerContext } from '../../../runtime/context.ts';
import { addressOf, isAssigned, objectNameOf } from '../cloud-private-ip/plan.ts';
import { errorMessage } from '../../../objects/status.ts';
import {
  cloudPrivateIPConfigs,
  egressIPs,
  leases as leasesResource,
  nodes as nodesResource,
} from '../../../client/resources.ts';
import { decodeReport, readAnnouncerLease } from '../../../network/announcing/agent-report.ts';
import {
  assignEgressIPs,
  type EgressAllocation,
  type EgressIPAssignment,
  type EgressNodeAgent,
  egressNodeOf,
  egressPartsOf,
  isInCloud,
} from '../../../network/egress/egress-ips.ts';
import { byAge } from '../../../network/egress/egress-plan.ts';
import { jsonEqual } from '../../../objects/json.ts';
import type { ObjectKey } from '../../../objects/meta.ts';
import type { Node } from '../../../objects/types/core.generated.ts';
import type { Lease } from '../../../objects/types/coordination.generated.ts';
import type { ControllerSpec, KeyLoop, ReconcileResult } from '../../../runtime/key-loop.ts';

/**
 * EgressIPs on a cloud (ovn-kubernetes `pkg/clustermanager/egressip_controller.go`): each address is a
 * CloudPrivateIPConfig, and enters the status once that one is assigned to the node.
 */

/** Names the EgressIP that a CloudPrivateIPConfig is for. */
const ownerAnnotation = 'k8s.ovn.org/egressip-owner-ref';

/** The CloudPrivateIPConfigs of EgressIPs. */
class CloudMode {
  readonly #context: Pick<ControllerContext, 'events'>;
  readonly #client: ResourceClient<CloudPrivateIPConfig>;
  readonly #configs: () => Iterable<CloudPrivateIPConfig>;

  /** @param configs all of the cluster. */
  constructor(
    context: Pick<ControllerContext, 'events'>,
    client: ResourceClient<CloudPrivateIPConfig>,
    configs: () => Iterable<CloudPrivateIPConfig>,
  ) {
    this.#context = context;
    this.#client = client;
    this.#configs = configs;
  }

  /** The items that an EgressIP has requested from the cloud: before the cloud has answered. */
  asked(name: string): readonly EgressIPItem[] {
    return this.#of(name).flatMap(({ metadata, spec }) => {
      const address = addressOf(metadata.name ?? '');
      if (address === undefined || metadata.deletionTimestamp !== undefined) return [];
      return [{ egressIP: address.canonical, node: spec.node ?? '' }];
    });
  }

  /** Those of the items whose nodes have their addresses: they may be in the status. */
  given(name: string, items: readonly EgressIPItem[]): readonly EgressIPItem[] {
    const assigned = new Map(
      this.#of(name)
        .filter(isAssigned)
        .map(({ metadata, spec }) => [metadata.name, spec.node]),
    );
    return items.filter(({ egressIP, node }) => assigned.get(nameOfText(egressIP)) === node);
  }

  /**
   * Requests the addresses of an EgressIP from the cloud, and releases those that its status has lost.
   *
   * @throws errors of writes; an Event on the object reports them.
   */
  async ask(object: EgressIP, items: readonly EgressIPItem[], signal: AbortSignal): Promise<void> {
    const { name = '' } = object.metadata;
    const wanted = new Map(items.map(({ egressIP, node }) => [nameOfText(egressIP), node]));
    const present = new Map(this.#of(name).map((config) => [config.metadata.name ?? '', config]));
    const write = async (
      reason: EventReason,
      verb: string,
      config: string,
      work: Promise<unknown>,
    ): Promise<void> => {
      try {
        await work;
      } catch (error) {
        if (isNotFound(error)) return;
        const why = errorMessage(error);
        const message = `egress IP: ${config} for object EgressIP: ${name} could not be ${verb}, err: ${why}`;
        this.#context.events.event(object, 'Warning', reason, message);
        throw error;
      }
    };
    for (const [config, { metadata }] of present) {
      if (wanted.has(config) || metadata.deletionTimestamp !== undefined) continue;
      await write('CloudDeletionFailed', 'deleted', config, this.#client.delete('', config, { signal }));
    }
    const ofOthers = new Set([...this.#configs()].map(({ metadata }) => metadata.name));
    for (const [config, node] of wanted) {
      // Of a deleted object: it is removed first, and this runs again.
      if (!present.has(config) && ofOthers.has(config)) continue;
      const before = present.get(config);
      if (before?.metadata.deletionTimestamp !== undefined) continue;
      if (before === undefined) {
        const annotations = { [ownerAnnotation]: name };
        const draft = { metadata: { name: config, annotations }, spec: { node } };
        await write('CloudAssignmentFailed', 'created', config, this.#client.create(draft, { signal }));
      } else if (before.spec.node !== node) {
        const patch = this.#client.mergePatch('', config, { spec: { node } }, { signal });
        await write('CloudUpdateFailed', 'updated', config, patch);
      }
    }
  }

  /** Deletes the requests for EgressIPs that were deleted. */
  async sweep(names: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    for (const { metadata } of this.#configs()) {
      const owner = metadata.annotations?.[ownerAnnotation];
      if (owner === undefined || names.has(owner) || metadata.deletionTimestamp !== undefined) continue;
      try {
        await this.#client.delete('', metadata.name ?? '', { signal });
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
  }

  #of(name: string): readonly CloudPrivateIPConfig[] {
    return [...this.#configs()].filter(({ metadata }) => metadata.annotations?.[ownerAnnotation] === name);
  }
}

function nameOfText(text: string): string {
  const address = parseAddress(text);
  return address === undefined ? '' : objectNameOf(address);
}

/** All are planned together, since no two may get the same address. */
const all: ObjectKey = 'all';

/** Assigns the addresses of EgressIPs to nodes, in their statuses; on a cloud, by its leave. */
export const egressIPController: ControllerSpec = {
  name: 'egress-ip-controller',
  eventSource: 'servicenet-egress-ip',
  queue: 'egress_ip',
  where: { serves: egressIPs, work: 'egress addresses' },
  build(loop) {
    const reconciler = new EgressIPReconciler(loop);
    return (_key, signal) => reconciler.reconcile(signal);
  },
};

class EgressIPReconciler {
  readonly #context: ControllerContext;
  readonly #client: ResourceClient<EgressIP>;
  readonly #objects: Informer<EgressIP>;
  readonly #nodes: Informer<Node>;
  readonly #agents: Agents;
  readonly #cloud: CloudMode;
  /** By uid: the Events of the last pass, which are written once. */
  readonly #lastEvents = new Map<string, EgressIPAssignment['events']>();
  /** By uid: all that was written over a version. While the cache has that one, any of it may be true by now. */
  readonly #written = new Map<string, { readonly over: string; readonly items: readonly EgressIPItem[] }>();

  constructor(loop: KeyLoop) {
    const { clients, clock } = loop.context;
    this.#context = loop.context;
    this.#client = clients.for(egressIPs);

    this.#objects = loop.cache(egressIPs);
    this.#nodes = loop.cache(nodesResource);
    const leases = loop.cache(leasesResource);
    const configs = loop.cache(cloudPrivateIPConfigs);

    this.#agents = new Agents(clock);
    this.#cloud = new CloudMode(loop.context, clients.for(cloudPrivateIPConfigs), () =>
      configs.cache.values(),
    );

    loop.on(this.#objects, ({ kind, object: { metadata } }) => {
      if (kind === 'deleted') {
        this.#lastEvents.delete(metadata.uid ?? '');
        this.#written.delete(metadata.uid ?? '');
      }
      return [all];
    });
    loop.on(configs, () => [all]);
    loop.on(this.#nodes, (change) => {
      // A heartbeat of the kubelet changes nothing that matters.
      const isSame =
        change.kind === 'updated' && jsonEqual(egressPartsOf(change.object), egressPartsOf(change.old));
      return isSame ? [] : [all];
    });
    loop.on(leases, ({ kind, object }) => {
      if (kind !== 'deleted') return this.#agents.see(object) ? [all] : [];
      this.#agents.forget(object);
      return [all];
    });
  }

  async reconcile(signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const nodes = [...this.#nodes.cache.values()];
    const known = new Map(
      nodes.map((node) => {
        const { name = '' } = node.metadata;
        return [name, egressNodeOf(node, this.#agents.get(name))];
      }),
    );
    const ordered = [...this.#objects.cache.values()].sort(byAge);
    const onCloud = nodes.some(isInCloud);
    // First, since addresses of deleted objects are not free for others.
    if (onCloud) await this.#cloud.sweep(new Set(ordered.map(({ metadata }) => metadata.name ?? '')), signal);
    const itemsOf = (object: EgressIP): readonly EgressIPItem[] =>
      onCloud ? this.#cloud.asked(object.metadata.name ?? '') : (object.status?.items ?? []);
    const allocations = allocationsOf(ordered, (object) => [...itemsOf(object), ...this.#unseen(object)]);
    for (const object of ordered) {
      const { name = '' } = object.metadata;
      const { egressIPs: wanted } = object.spec;
      const { items, events } = assignEgressIPs(name, wanted, itemsOf(object), known, allocations);
      for (const { egressIP, node } of items ?? []) allocations.set(egressIP, { object: name, node });
      this.#report(object, events);
      if (items === undefined) continue;
      const shown = onCloud ? this.#cloud.given(name, items) : items;
      const isSame = this.#unseen(object).length === 0 && jsonEqual(shown, object.status?.items ?? []);
      const isShown = isSame || (await this.#writeStatus(object, shown, signal));
      // An address is released once no status has it.
      if (onCloud && isShown) await this.#cloud.ask(object, items, signal);
    }
    const nextMs = this.#agents.nextEnd();
    return nextMs === undefined ? undefined : { requeueAfterMs: nextMs };
  }

  #report(object: EgressIP, events: EgressIPAssignment['events']): void {
    const { uid = '' } = object.metadata;
    const before = this.#lastEvents.get(uid) ?? [];
    for (const event of events) {
      if (before.some((one) => jsonEqual(one, event))) continue;
      this.#context.events.event(object, 'Warning', event.reason, event.message);
    }
    this.#lastEvents.set(uid, events);
  }

  #unseen({ metadata: { uid = '', resourceVersion = '' } }: EgressIP): readonly EgressIPItem[] {
    const last = this.#written.get(uid);
    return last?.over === resourceVersion ? last.items : [];
  }

  /** @returns false: the object is newer than it was read, and comes here again. */
  async #writeStatus(
    object: EgressIP,
    items: readonly EgressIPItem[],
    signal: AbortSignal,
  ): Promise<boolean> {
    const { name = '', uid = '', resourceVersion = '' } = object.metadata;
    this.#written.set(uid, { over: resourceVersion, items: [...this.#unseen(object), ...items] });
    const patch = { metadata: { resourceVersion }, status: { items } };
    try {
      await this.#client.mergePatch('', name, patch, { signal });
      return true;
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) throw error;
      return false;
    }
  }
}

interface KnownAgent extends EgressNodeAgent {
  /** Until then what the agent has left for its restart lasts; monotonic. */
  readonly keptUntilMs: number | undefined;
}

/** The reports in the Leases of agents. Others give back the Lease of one that has died. */
class Agents {
  readonly #clock: Pick<ControllerContext['clock'], 'monotonic'>;
  readonly #known = new Map<string, KnownAgent>();

  constructor(clock: Pick<ControllerContext['clock'], 'monotonic'>) {
    this.#clock = clock;
  }

  /** @returns whether it has changed. */
  see(lease: Lease): boolean {
    const read = readAnnouncerLease(lease);
    if (read === undefined) return false;
    const { interfaces, kept } = decodeReport(read.reportText);
    const isHeld = read.acquired !== undefined;
    const before = this.#known.get(read.node);
    const known = {
      isGone: !isHeld && kept === undefined,
      networks: interfaces.flatMap(({ subnets }) => subnets),
      keptUntilMs:
        isHeld || kept === undefined
          ? undefined
          : (before?.keptUntilMs ?? this.#clock.monotonic() + kept.seconds * 1000),
    };
    this.#known.set(read.node, known);
    return before === undefined || textOf(before) !== textOf(known);
  }

  forget(lease: Lease): void {
    const read = readAnnouncerLease(lease);
    if (read !== undefined) this.#known.delete(read.node);
  }

  /** Undefined where no agent has ever run on the node. */
  get(node: string): EgressNodeAgent | undefined {
    const known = this.#known.get(node);
    if (known?.keptUntilMs === undefined || known.keptUntilMs > this.#clock.monotonic()) return known;
    return { ...known, isGone: true };
  }

  /** Milliseconds until what an agent has left is over; undefined: none has left anything. */
  nextEnd(): number | undefined {
    const now = this.#clock.monotonic();
    let next: number | undefined;
    for (const { keptUntilMs = 0 } of this.#known.values()) {
      if (keptUntilMs > now) next = Math.min(next ?? keptUntilMs, keptUntilMs);
    }
    return next === undefined ? undefined : next - now;
  }
}

function textOf({ isGone, networks, keptUntilMs }: KnownAgent): string {
  return `${isGone} ${keptUntilMs} ${networks.map(({ canonical }) => canonical).join()}`;
}

/** By canonical address; of two objects that claim one, the older one's. */
function allocationsOf(
  objects: readonly EgressIP[],
  itemsOf: (object: EgressIP) => readonly EgressIPItem[],
): Map<string, EgressAllocation> {
  const allocations = new Map<string, EgressAllocation>();
  for (const object of objects) {
    for (const { egressIP, node } of itemsOf(object)) {
      const address = parseAddress(egressIP)?.canonical;
      if (address !== undefined && !allocations.has(address))
        allocations.set(address, { object: object.metadata.name ?? '', node });
    }
  }
  return allocations;
}
