import type { Informer } from '../../../client/informers/informer.ts';
import type { ObjectKey } from '../../../objects/key.ts';
import { isNodeReady } from '../../../objects/pods.ts';
import type { Node } from '../../../objects/types/core.generated.ts';
import type { ControllerContext } from '../../../runtime/context.ts';
import { Controller } from '../../../runtime/controller.ts';
import { type HintsByZone, isOverloaded } from './plan-topology.ts';
import { zoneOf, type ZoneShares, zoneShares } from './zone-capacity.ts';

const nodesKey = 'nodes';

/**
 * Follows the zones of the Nodes and the hints given by their capacity, and enqueues the Services whose hints no longer
 * fit.
 */
export class TopologyHints {
  /** Checks the Services after the Nodes changed; one key stands for all of them. */
  readonly controller: Controller;
  readonly #nodes: Informer<Node>;
  readonly #hints = new Map<ObjectKey, ReadonlyMap<string, HintsByZone>>();
  #shares: { zones: ZoneShares | undefined } | undefined;

  /** @param overloaded called with the key of each Service that must be planned again. */
  constructor(context: ControllerContext, nodes: Informer<Node>, overloaded: (key: ObjectKey) => void) {
    this.#nodes = nodes;
    this.controller = new Controller({
      name: 'endpoint_slice_topology',
      context,
      workers: 1,
      waitFor: [nodes],
      reconcile: () => {
        for (const [key, families] of this.#hints) {
          for (const hints of families.values()) {
            if (!isOverloaded(hints, this.zones())) continue;
            overloaded(key);
            break;
          }
        }
        return Promise.resolve(undefined);
      },
    });
    nodes.addHandler({
      added: (_node, initial) => this.#changed(!initial),
      updated: (node, old) => {
        if (isNodeReady(node) !== isNodeReady(old) || zoneOf(node) !== zoneOf(old)) this.#changed(true);
      },
      deleted: () => this.#changed(true),
    });
  }

  /** The zones' shares of the CPU, computed on first use after a change. */
  zones(): ZoneShares | undefined {
    this.#shares ??= { zones: zoneShares(this.#nodes.cache.values()) };
    return this.#shares.zones;
  }

  /** True when the last plan for a Service gave hints by capacity. */
  has(key: ObjectKey): boolean {
    return this.#hints.has(key);
  }

  /** Records the hints of a plan, per address family; none removes the Service. */
  note(key: ObjectKey, hints: ReadonlyMap<string, HintsByZone>): void {
    if (hints.size === 0) this.#hints.delete(key);
    else this.#hints.set(key, hints);
  }

  #changed(check: boolean): void {
    this.#shares = undefined;
    if (check && this.#hints.size > 0) this.controller.enqueue(nodesKey);
  }
}
