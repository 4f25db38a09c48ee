import type { ObjectKey } from '../../objects/key.ts';

/** Why a part of an object is not forwarded. */
export type ProblemReason =
  /** Text that is no address or CIDR. */
  | 'InvalidAddress'
  /** Outside of 1 to 65535, or absent in a slice. */
  | 'InvalidPort'
  /** Neither TCP, UDP nor SCTP. */
  | 'InvalidProtocol'
  /** Outside of 1 to 86400 seconds; the default, 10800, is used. */
  | 'InvalidAffinityTimeout'
  /** An endpoint of another family than its slice's. */
  | 'AddressFamilyMismatch'
  /** An endpoint without an address. */
  | 'NoAddress'
  /** The same endpoint twice in one slice, or the same port twice in one Service. */
  | 'Duplicate'
  /** `loadBalancerSourceRanges` has no usable range of a family in which there is a load balancer IP: all may connect. */
  | 'NoSourceRange'
  /** `externalTrafficPolicy: Local` of a load balancer without `healthCheckNodePort`. */
  | 'NoHealthCheckNodePort'
  /** Another Service has the address and port. */
  | 'DestinationConflict';

/** Something odd in an object. The rest of the object is forwarded. */
export interface Problem {
  readonly reason: ProblemReason;
  readonly kind: 'Service' | 'EndpointSlice';
  readonly key: ObjectKey;
  /** The field, its value and what follows, of the first one where several have the same reason. */
  readonly message: string;
}

/** Collects the problems of one Service and its slices: one for each object and reason. */
export class Problems {
  #byObject: Map<string, { problem: Problem; more: number }> | undefined;

  add(reason: ProblemReason, kind: Problem['kind'], key: ObjectKey, message: string): void {
    const id = `${reason} ${kind} ${key}`;
    this.#byObject ??= new Map();
    const known = this.#byObject.get(id);
    if (known === undefined) this.#byObject.set(id, { problem: { reason, kind, key, message }, more: 0 });
    else known.more++;
  }

  /** In the order in which they were found. */
  list(): readonly Problem[] {
    if (this.#byObject === undefined) return noProblems;
    return Array.from(this.#byObject.values(), ({ problem, more }) =>
      more === 0 ? problem : { ...problem, message: `${problem.message} (and ${more} more)` },
    );
  }
}

const noProblems: readonly Problem[] = [];
