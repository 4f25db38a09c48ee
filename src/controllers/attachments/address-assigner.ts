import { type Attachment, staticAddresses } from '../../network/attachments/attachments.ts';
import { networkStatusOf } from '../../network/attachments/network-status.ts';
import { formatAddress } from '../../objects/address.ts';
import { keyOf } from '../../objects/key.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import { HostLocalAddresses } from './host-local.ts';
import type { IPPools } from './ip-pools.ts';
import type { Addressed } from './plan-status.ts';
import type { SandboxAttempt } from './sandbox-attempt.ts';

/** Gives the attachments of Pods their addresses, by the IPAM plugin of each. */
export class AddressAssigner {
  readonly #pools: IPPools;
  readonly #hostLocal = new HostLocalAddresses();

  constructor(pools: IPPools) {
    this.#pools = pools;
  }

  /** Loads the addresses that the plugin `host-local` has given to an attached Pod. */
  observe(pod: Pod, attachments: readonly Attachment[]): void {
    for (const status of networkStatusOf(pod) ?? []) {
      const attachment = attachments.find((each) => each.interface === status.interface);
      if (attachment?.config.plugin.ipam.type !== 'host-local') continue;
      const holder = { uid: pod.metadata.uid ?? '', interface: attachment.interface };
      for (const ip of status.ips ?? []) this.#hostLocal.observe(scopeOf(pod, attachment), ip, holder);
    }
  }

  /** @throws {AttachmentError} where one cannot have an address; and what a request throws. */
  async assign(
    pod: Pod,
    attachments: readonly Attachment[],
    attempt: SandboxAttempt,
    signal: AbortSignal,
  ): Promise<readonly Addressed[]> {
    const addressed: Addressed[] = [];
    for (const attachment of attachments) {
      addressed.push({ attachment, ips: await this.#addresses(pod, attachment, attempt, signal) });
    }
    return addressed;
  }

  /** What the plugin `host-local` has given to a Pod is free. */
  releaseLocal({ metadata }: Pod): void {
    this.#hostLocal.release(metadata.uid ?? '');
  }

  async #addresses(
    pod: Pod,
    attachment: Attachment,
    attempt: SandboxAttempt,
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    const { ipam } = attachment.config.plugin;
    switch (ipam.type) {
      case 'none':
      case 'other':
        return [];
      case 'static':
        return staticAddresses(attachment).map(({ address }) => address);
      case 'host-local': {
        const holder = { uid: pod.metadata.uid ?? '', interface: attachment.interface };
        return this.#hostLocal.assign(scopeOf(pod, attachment), ipam.sets, attachment.selection.ips, holder);
      }
      case 'whereabouts': {
        const { ranges, networkName, overlapping } = ipam;
        const owner = { podref: keyOf(pod), ifname: attachment.interface };
        const found: string[] = [];
        for (const range of ranges) {
          const value = await this.#pools.allocate(
            { range, networkName, overlapping },
            owner,
            attempt,
            signal,
          );
          found.push(formatAddress(range.network.family, value));
        }
        return found;
      }
    }
  }
}

/** The plugin `host-local` keeps what it gives on each node, by the network's name. */
function scopeOf({ spec }: Pod, { config }: Attachment): string {
  return `${spec.nodeName ?? ''}/${config.name}`;
}
