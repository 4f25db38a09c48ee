import type { ServiceChange } from '../network/forwarding/forwarding-planner.ts';
import type { Host } from '../host/host.ts';
import type { ParsedAddress } from '../objects/address.ts';
import type { ControllerContext, Runnable } from '../runtime/context.ts';
import { Controller, type ReconcileResult } from '../runtime/controller.ts';
import { ForwardingView, type NodeForwardingOptions, type Planned } from './forwarding-view.ts';
import { interfaceAddresses } from './interface-addresses.ts';
import { Nft } from './nftables/nft.ts';
import { NftablesWriter } from './nftables/nftables-writer.ts';
import { otherProxies } from './nftables/other-proxies.ts';

export interface NodeAgentOptions {
  /**
   * Its informers are to see no Service and no EndpointSlice of another proxy, and no slice of a headless Service:
   * {@link forwardingSelectors} says so to the API server (F1).
   */
  readonly context: Pick<ControllerContext, 'informers' | 'clock' | 'random' | 'log' | 'metrics'>;
  readonly host: Host;
  /** Of the Node object. */
  readonly nodeName: string;
  readonly forwarding: NodeForwardingOptions;
  /** The bits of the packet mark that are ours (`nftables/marks.ts`). */
  readonly markMask?: number;
  /** Milliseconds between the starts of two syncs, at least; default 50. The first change after a pause does not wait. */
  readonly minSyncPeriod?: number;
  /** Milliseconds after which everything is compared with the kernel again; default one hour. */
  readonly fullSyncPeriod?: number;
  /** Start even where another Service proxy is at work. Default false. */
  readonly besideOtherProxies?: boolean;
}

/** The label selectors of kube-proxy's informers (F1), by resource: for `InformerFactoryOptions.labelSelectors`. */
export const forwardingSelectors = {
  services: '!service.kubernetes.io/service-proxy-name',
  'endpointslices.discovery.k8s.io':
    '!service.kubernetes.io/headless,!service.kubernetes.io/service-proxy-name',
} as const;

/** Another Service proxy works on this node. */
export class OtherProxyError extends Error {
  override readonly name = 'OtherProxyError';
}

/** The one key of the work queue. */
const everything = 'node';

/**
 * The agent of one node: it keeps the node's kernel as the plan says. One process may have several, a Host each, on
 * shared informers.
 */
export class NodeAgent implements Runnable {
  readonly #options: NodeAgentOptions;
  readonly #view: ForwardingView;
  readonly #writer: NftablesWriter;
  readonly #controller: Controller;
  #addresses: readonly ParsedAddress[] = [];
  #lastSync = Number.NEGATIVE_INFINITY;
  #nextFullSync = Number.NEGATIVE_INFINITY;

  constructor(options: NodeAgentOptions) {
    const { context, host, nodeName, forwarding, markMask, minSyncPeriod = 50 } = options;
    this.#options = options;
    this.#writer = new NftablesWriter({ host, ...(markMask === undefined ? {} : { markMask }) });
    this.#view = new ForwardingView(context.informers, nodeName, forwarding, () => {
      const after = Math.max(0, this.#lastSync + minSyncPeriod - context.clock.monotonic());
      this.#controller.enqueue(everything, { after });
    });
    this.#controller = new Controller({
      name: `node_${nodeName}`,
      context,
      reconcile: () => this.#sync(),
      workers: 1,
      waitFor: this.#view.sources,
      backoff: { base: 1000, max: 30_000 },
    });
    this.#controller.enqueue(everything);
  }

  /**
   * Follows the API until the signal aborts, and leaves what it wrote: connections go on being forwarded.
   *
   * @throws {OtherProxyError} before anything is written.
   * @throws {NftError} where nft is missing, or the kernel refuses it.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { host, besideOtherProxies = false } = this.#options;
    const others = await otherProxies(host, new Nft(host));
    if (others.length > 0 && !besideOtherProxies) {
      throw new OtherProxyError(
        `another Service proxy works on this node (${others.join(', ')}): remove kube-proxy first, with what "kube-proxy --cleanup" takes away`,
      );
    }
    await this.#controller.run(signal);
  }

  async #sync(): Promise<ReconcileResult> {
    const { context, host, fullSyncPeriod = 3_600_000 } = this.#options;
    const { clock, log } = context;
    this.#lastSync = clock.monotonic();
    if (this.#lastSync >= this.#nextFullSync) {
      this.#addresses = await interfaceAddresses(host);
      this.#writer.distrust();
    }
    const planned = this.#view.update(this.#addresses);
    if (planned === undefined) {
      log.warn({ node: this.#options.nodeName }, 'the API knows no such node yet: nothing is forwarded');
      return {};
    }
    this.#tellProblems(planned.changes);
    await this.#program(planned);
    if (this.#lastSync >= this.#nextFullSync) this.#nextFullSync = this.#lastSync + fullSyncPeriod;
    return { requeueAfter: Math.max(0, this.#nextFullSync - clock.monotonic()) };
  }

  async #program({ plan, changes }: Planned): Promise<void> {
    const { clock, log } = this.#options.context;
    const started = clock.monotonic();
    const { transactions, elements } = await this.#writer.sync(
      plan,
      changes.map(({ key }) => key),
    );
    if (transactions === 0) return;
    const milliseconds = Math.round(clock.monotonic() - started);
    log.debug({ transactions, elements, milliseconds }, 'wrote Services into the kernel');
  }

  /** Each once: when it came. */
  #tellProblems(changes: readonly ServiceChange[]): void {
    for (const { before, after } of changes) {
      const known = new Set(before?.problems.map(({ message }) => message));
      for (const { kind, key, reason, message } of after?.problems ?? []) {
        if (!known.has(message)) this.#options.context.log.warn({ kind, key, reason }, message);
      }
    }
  }
}
