import type { ObjectKey } from '../../objects/key.ts';

/** Why a part of an object is not forwarded. */
export type ProblemReason =
  /** Text that is no address or CIDR. */
  | 'InvalidAddress'
  /** Outside of 1 to 65535. */
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
  /** Where, what, and what follows; ends without a full stop. */
  readonly message: string;
}
