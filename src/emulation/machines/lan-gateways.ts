import type { Informer } from '../../client/informers/informer.ts';
import { networkAttachmentDefinitions } from '../../client/resources.ts';
import { lanGateways } from '../../network/attachments/network-gateways.ts';
import type { NetworkAttachmentDefinition } from '../../objects/types/attachments.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import { Reconciler } from '../../runtime/reconciler.ts';
import { ip } from '../ip.ts';
import { lanInterface } from '../lan.ts';
import { SecondLans } from './second-lans.ts';

/** The one key of the queue. */
const gateways = 'gateways';

/**
 * Gives `outside` the addresses of the gateways that networks of macvlan name: it is the router of these networks, and the
 * machine that Pods meet there.
 */
export class LanGateways extends Reconciler {
  readonly #definitions: Informer<NetworkAttachmentDefinition>;
  readonly #lans: SecondLans;
  /** Ranges whose addresses belong to machines, Pods and Services. */
  readonly #taken: readonly string[];
  readonly #present = new Set<string>();

  constructor(context: ControllerContext, lans: SecondLans, taken: readonly string[]) {
    super(context, 'lan_gateways', { workers: 1 });
    this.#lans = lans;
    this.#taken = taken;
    this.#definitions = this.informer(networkAttachmentDefinitions);
    const touch = (): void => this.queue.enqueue(gateways);
    this.#definitions.addHandler({ added: touch, updated: touch, deleted: touch });
  }

  protected override async reconcile(): Promise<undefined> {
    const wanted = new Set<string>();
    for (const { master = lanInterface, address, prefixLength } of lanGateways(
      this.#definitions.cache.values(),
      this.#taken,
    )) {
      if (SecondLans.has(master)) await this.#lans.plugInOutside(master);
      else if (master !== lanInterface) continue;
      wanted.add(`${address}/${prefixLength} dev ${master}`);
    }
    for (const each of [...this.#present].filter((one) => !wanted.has(one))) {
      await ip([`address delete ${each}`], 'outside');
      this.#present.delete(each);
    }
    for (const each of [...wanted].filter((one) => !this.#present.has(one))) {
      try {
        await ip([`address replace ${each}${each.includes(':') ? ' nodad' : ''}`], 'outside');
        this.#present.add(each);
      } catch (error) {
        // Such as the address of a network: the others are not to wait for it.
        this.context.log.warn(
          { err: error, reason: 'InvalidGateway' },
          'outside cannot be the gateway of a network: correct its NetworkAttachmentDefinition',
        );
      }
    }
    return undefined;
  }
}
