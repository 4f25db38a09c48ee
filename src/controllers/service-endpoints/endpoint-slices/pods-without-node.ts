import type { ObjectKey } from '../../../objects/key.ts';
import type { Pod } from '../../../objects/core.generated.ts';

/** The Services that leave out Pods because a Node is missing. */
export class PodsWithoutNode {
  readonly #services = new Map<string, Set<ObjectKey>>();
  readonly #nodes = new Map<ObjectKey, Set<string>>();

  /** Records the Pods that the last plan for a Service left out; an empty list removes the Service. */
  note(key: ObjectKey, pods: readonly Pod[]): void {
    for (const node of this.#nodes.get(key) ?? []) {
      const waiting = this.#services.get(node);
      waiting?.delete(key);
      if (waiting?.size === 0) this.#services.delete(node);
    }
    const nodes = new Set(pods.flatMap(({ spec }) => spec.nodeName ?? []));
    if (nodes.size === 0) this.#nodes.delete(key);
    else this.#nodes.set(key, nodes);
    for (const node of nodes) {
      const waiting = this.#services.get(node);
      if (waiting === undefined) this.#services.set(node, new Set([key]));
      else waiting.add(key);
    }
  }

  /** The Services that leave out Pods of a Node. */
  waitingFor(nodeName: string): readonly ObjectKey[] {
    return [...(this.#services.get(nodeName) ?? [])];
  }
}
