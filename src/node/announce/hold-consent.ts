import type { Host } from '../../host/host.ts';
import type { Fence } from '../../network/announcing/fence.ts';
import type { Liveness } from '../../network/announcing/liveness.ts';
import { ownerOf } from '../../network/announcing/owner.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import { type AnnouncementView, internalAddresses } from './announcement-view.ts';
import { Heartbeats, type KeepQuestion } from './heartbeats.ts';

export interface HoldConsentOptions {
  readonly context: Pick<ControllerContext, 'clock' | 'log'>;
  readonly host: Host;
  /** Of the Node object. */
  readonly nodeName: string;
  /** The UDP port of heartbeats, the same on all nodes. */
  readonly heartbeatPort: number;
  readonly view: () => AnnouncementView;
  /** Addresses that this node has, or is about to have. */
  readonly addresses: () => Iterable<string>;
  /** Another agent has these addresses, and keeps them. */
  readonly released: (addresses: readonly string[]) => void;
  /** There may be something to do. */
  readonly changed: () => void;
}

/**
 * The consent of agents, by heartbeats, that each of them holds its addresses while the API server answers none:
 * this agent asks for it, and answers those that ask. `network/announcing/fence.ts` says which agents are asked.
 */
export class HoldConsent {
  readonly #options: HoldConsentOptions;
  readonly #fence: Fence;
  readonly #liveness: Liveness;
  readonly #heartbeats: Heartbeats;

  constructor(options: HoldConsentOptions, fence: Fence, liveness: Liveness) {
    this.#options = options;
    this.#fence = fence;
    this.#liveness = liveness;
    this.#heartbeats = new Heartbeats(options.host, options.heartbeatPort, options.context.log);
  }

  /** Listens for heartbeats. @throws the system's error. */
  async open(): Promise<void> {
    const { changed, nodeName, released, view } = this.#options;
    const own = view().node(nodeName);
    if (own === undefined) return;
    const isFrom = (node: string, from: string): boolean => {
      const sender = view().node(node);
      return sender !== undefined && internalAddresses(sender).includes(from);
    };
    await this.#heartbeats.open(nodeName, internalAddresses(own), {
      asked: (question, from) => (isFrom(question.node, from) ? this.#answer(question) : undefined),
      consented: ({ node, askedAt, except }, from) => {
        if (!isFrom(node, from)) return;
        released(except);
        this.#fence.consented(node, askedAt, this.#now());
        changed();
      },
    });
  }

  close(): void {
    this.#heartbeats.close();
  }

  /** Asks the others, once the API server is lost. */
  ask(): void {
    const { addresses, changed, nodeName, view } = this.#options;
    const now = this.#now();
    if (!this.#fence.hasLostAPI(now)) return;
    const own = [...addresses()];
    for (const voter of this.#fence.toAsk(now)) {
      const node = view().node(voter);
      const [to] = node === undefined ? [] : internalAddresses(node);
      if (to !== undefined) this.#heartbeats.ask(nodeName, own, now, to);
    }
    changed();
  }

  /**
   * Only an agent that has lost the API server too consents: it takes nothing over. Of two that have an address, in the
   * middle of a move, one keeps it.
   */
  #answer({ node, addresses }: KeepQuestion): readonly string[] | undefined {
    const { changed, nodeName, released } = this.#options;
    const now = this.#now();
    if (!this.#fence.hasLostAPI(now) || !this.#liveness.promise(node, now)) return undefined;
    const own = new Set(this.#options.addresses());
    const common = addresses.filter((address) => own.has(address));
    const kept = common.filter((address) => ownerOf(address, [nodeName, node]) === nodeName);
    released(common.filter((address) => !kept.includes(address)));
    if (common.length > 0) changed();
    return kept;
  }

  #now(): number {
    return this.#options.context.clock.monotonic();
  }
}
