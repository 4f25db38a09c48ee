import { networkAttachmentDefinitions } from '../../client/resources.ts';
import { asksForNetworks } from '../../network/attachments/attachments.ts';
import { isAttached } from '../../network/attachments/network-status.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import { isWorkOfOurs } from '../../runtime/where-served.ts';

/** Milliseconds for which an answer holds that networks are attached here. */
const answerLasts = 15_000;

/**
 * Pods whose containers wait: those with further networks, until their `network-status` has them. Multus attaches
 * them while the sandbox is made. Without our own attachments controller nothing waits.
 */
export class AwaitedNetworks {
  readonly #context: Pick<ControllerContext, 'clients' | 'clock'>;
  #knownUntil = 0;

  constructor(context: Pick<ControllerContext, 'clients' | 'clock'>) {
    this.#context = context;
  }

  /** @throws what a request throws. */
  async areAwaited(pod: Pod, signal: AbortSignal): Promise<boolean> {
    if (!asksForNetworks(pod) || isAttached(pod) || hasStarted(pod)) return false;
    const { clock } = this.#context;
    if (clock.monotonic() < this.#knownUntil) return true;
    if (!(await isWorkOfOurs(this.#context, networkAttachmentDefinitions, 'network attachments', signal))) {
      return false;
    }
    this.#knownUntil = clock.monotonic() + answerLasts;
    return true;
  }
}

/** Before networks were attached here. */
function hasStarted({ status }: Pod): boolean {
  const { initContainerStatuses = [], containerStatuses = [] } = status;
  return [...initContainerStatuses, ...containerStatuses].some(
    ({ state }) => state?.running !== undefined || state?.terminated !== undefined,
  );
}
