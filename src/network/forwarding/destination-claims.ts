import type { ObjectKey } from '../../objects/key.ts';
import type { DestinationKind } from './forwarding-plan.ts';

/** A Service's wish to answer on one address and port. */
export interface Claim {
  readonly service: ObjectKey;
  /** `metadata.creationTimestamp`, RFC 3339 in UTC. */
  readonly created: string;
  readonly kind: DestinationKind;
}

const precedence: Record<DestinationKind, number> = {
  clusterIP: 0,
  loadBalancerIP: 1,
  externalIP: 2,
  nodePort: 3,
};

/**
 * The Services that claim one address and port. kube-proxy lets the order of a Go map decide between them, sync by
 * sync; here exactly one has it. What the cluster allocated goes before what users wrote, so that an external IP never
 * takes over another Service's address: cluster IPs, then load balancer IPs, then external IPs. Between equals the
 * older Service has it, then the one whose key is first, so that a new Service takes traffic from none.
 */
export class DestinationClaims {
  readonly #claims = new Map<ObjectKey, Claim>();
  /** Undefined where the owner has gone: the next is looked for when it is asked for, not after each removal. */
  #owner: Claim | undefined;

  constructor(first: Claim) {
    this.#owner = first;
    this.#claims.set(first.service, first);
  }

  /** @throws {Error} where no Service takes part. */
  get owner(): Claim {
    if (this.#owner === undefined) {
      for (const claim of this.#claims.values()) {
        if (this.#owner === undefined || goesBefore(claim, this.#owner)) this.#owner = claim;
      }
    }
    if (this.#owner === undefined) throw new Error('no Service claims it');
    return this.#owner;
  }

  /** The number of Services with claims. */
  get size(): number {
    return this.#claims.size;
  }

  services(): Iterable<ObjectKey> {
    return this.#claims.keys();
  }

  /** Adds a Service that is not part of it. */
  add(claim: Claim): void {
    this.#claims.set(claim.service, claim);
    if (this.#owner !== undefined && goesBefore(claim, this.#owner)) this.#owner = claim;
  }

  remove(service: ObjectKey): void {
    this.#claims.delete(service);
    if (this.#owner?.service === service) this.#owner = undefined;
  }
}

function goesBefore(a: Claim, b: Claim): boolean {
  if (a.kind !== b.kind) return precedence[a.kind] < precedence[b.kind];
  if (a.created !== b.created) return a.created < b.created;
  return a.service < b.service;
}
