/**
 * EgressIPs on a cloud (ovn-kubernetes `pkg/clustermanager/egressip_controller.go`): each address is a
 * CloudPrivateIPConfig, and enters the status once that one is assigned to the node.
 */
import { isNotFound } from '../../client/errors.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import { parseAddress } from '../../objects/address.ts';
import type { CloudPrivateIPConfig } from '../../objects/types/cloud-network.ts';
import type { EgressIP, EgressIPItem } from '../../objects/types/ovn.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import { addressOf, isAssigned, objectNameOf } from '../cloud-private-ips/plan.ts';
import { errorMessage } from '../../objects/error-message.ts';

/** Names the EgressIP that a CloudPrivateIPConfig is for. */
const ownerAnnotation = 'k8s.ovn.org/egressip-owner-ref';

/** The CloudPrivateIPConfigs of EgressIPs. */
export class CloudMode {
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
      reason: string,
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
