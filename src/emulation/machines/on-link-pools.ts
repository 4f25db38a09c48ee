import type { Informer } from '../../client/informers/informer.ts';
import { addressPools } from '../../client/resources.ts';
import { announcedPools } from '../../network/announcing/assigned-addresses.ts';
import type { AddressPool } from '../../objects/types/servicenet.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import { Reconciler } from '../../runtime/reconciler.ts';
import { ip } from '../ip.ts';
import { lanInterface } from '../lan.ts';

/** The one key of the queue. */
const routes = 'routes';

/**
 * Keeps routes of `outside`: the addresses of pools that nodes announce on the LAN are asked for there by ARP and NDP.
 * Others lead to a node.
 */
export class OnLinkPools extends Reconciler {
  readonly #pools: Informer<AddressPool>;
  #present: ReadonlySet<string> = new Set();

  constructor(context: ControllerContext) {
    super(context, 'on_link_pools', { workers: 1 });
    this.#pools = this.informer(addressPools);
    const touch = (): void => this.queue.enqueue(routes);
    this.#pools.addHandler({ added: touch, updated: touch, deleted: touch });
  }

  protected override async reconcile(): Promise<undefined> {
    const wanted = new Set(
      announcedPools(this.#pools.cache.values())
        .filter(({ announcement }) => announcement.layer2?.interfaces?.includes(lanInterface) === true)
        .flatMap(({ ranges }) => ranges.flatMap((range) => range.cidrs())),
    );
    const lines = [
      ...[...wanted].map((cidr) => `route replace ${cidr} dev ${lanInterface}`),
      ...[...this.#present]
        .filter((cidr) => !wanted.has(cidr))
        .map((cidr) => `route delete ${cidr} dev ${lanInterface}`),
    ];
    if (lines.length > 0) await ip(lines, 'outside');
    this.#present = wanted;
    return undefined;
  }
}
