import type { Node, Pod } from '../../objects/core.generated.ts';

/** What a Pod's sandbox should be. */
export interface WantedSandbox {
  readonly pod: Pod;
  readonly node: Node;
  /** The Pod's own, or the node's with `hostNetwork`. */
  readonly addresses: readonly string[];
  /** Containers run; without, as between two starts of a failing one, nothing listens. */
  readonly running: boolean;
  /** The containers are ready. */
  readonly ready: boolean;
}

/** Where the kubelet puts Pods: the part of a container runtime that it needs. */
export interface PodSandboxes {
  /**
   * Makes the sandbox what it should be; resolves once it stands, and what runs in it listens. Without a difference it
   * does nothing.
   *
   * @throws {SandboxError} which the next call may not throw.
   */
  ensure(wanted: WantedSandbox): Promise<void>;

  /** Ends what runs in the sandbox of a Pod, and the sandbox. Does nothing where there is none. */
  remove(pod: Pod): Promise<void>;
}

/** A sandbox cannot be made now. The message is for an Event of the Pod. */
export class SandboxError extends Error {
  override readonly name = 'SandboxError';
}

/** Pods of a cluster without a network: nothing but objects. */
export const noSandboxes: PodSandboxes = {
  ensure: () => Promise.resolve(),
  remove: () => Promise.resolve(),
};
