/** The life of a ServiceCIDR (pkg/controller/servicecidrs). Pure. */
import {
  addressBits,
  parseAddress,
  parseCidr,
  type ParsedAddress,
  type ParsedCidr,
} from '../../objects/address.ts';
import { pushAll } from '../../objects/lists.ts';
import type { Condition } from '../../objects/meta.ts';
import type { IPAddress, ServiceCIDR } from '../../objects/networking.generated.ts';

/** Keeps a ServiceCIDR until no address needs it. */
export const serviceCidrFinalizer = 'networking.k8s.io/service-cidr-finalizer';

/**
 * How long a ServiceCIDR stays after its deletion, so that every allocator has seen it, in milliseconds. Kubernetes'
 * controller counts from the deletionTimestamp, so that a clock which is ahead of the API server's makes it nothing.
 */
const gracePeriod = 10_000;

/** What is to be done with a ServiceCIDR. */
export type CidrStep =
  | { do: 'nothing' }
  | { do: 'add finalizer' }
  | { do: 'remove finalizer' }
  | { do: 'set condition'; condition: Condition }
  /** Look again after so many milliseconds. */
  | { do: 'wait'; milliseconds: number };

/** What a plan is made from. */
export interface CidrInput {
  cidr: ServiceCIDR;
  /** All ServiceCIDRs, this one too. */
  cidrs: Iterable<ServiceCIDR>;
  /** The addresses that the API server's allocators made. */
  addresses: Iterable<IPAddress>;
  /** Milliseconds since its deletion was first seen; 0 for one that is not deleted. */
  deletedFor: number;
  /** Now, in RFC 3339, for conditions. */
  time: string;
}

/** The next step for a ServiceCIDR; after a write it is planned again. */
export function planCidr(input: CidrInput): CidrStep {
  const { cidr, deletedFor } = input;
  const { deletionTimestamp, finalizers = [] } = cidr.metadata;
  const isKept = finalizers.includes(serviceCidrFinalizer);
  if (deletionTimestamp === undefined) {
    if (!isKept) return { do: 'add finalizer' };
    return condition(input, 'True', '', 'Kubernetes Service CIDR is ready');
  }
  if (!isKept) return { do: 'nothing' };
  if (orphansAddresses(input)) {
    return condition(
      input,
      'False',
      'Terminating',
      'There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR',
    );
  }
  const left = gracePeriod - deletedFor;
  return left > 0 ? { do: 'wait', milliseconds: left } : { do: 'remove finalizer' };
}

/**
 * A condition that says so already stays as it is (`updateConditionIfNeeded`). The API server calls its own ServiceCIDR
 * "Kubernetes default Service CIDR is ready", which is written over; it leaves one that is ready alone.
 */
function condition(
  { cidr, time }: CidrInput,
  status: 'True' | 'False',
  reason: string,
  message: string,
): CidrStep {
  const old = cidr.status.conditions?.find(({ type }) => type === 'Ready');
  if (old?.status === status && old.reason === reason && old.message === message) return { do: 'nothing' };
  return {
    do: 'set condition',
    condition: { type: 'Ready', status, lastTransitionTime: time, reason, message },
  };
}

/** True when an address would be in no ServiceCIDR without this one (`canDeleteCIDR`). */
function orphansAddresses({ cidr, cidrs, addresses }: CidrInput): boolean {
  const own = rangesOf(cidr);
  const others: ParsedCidr[] = [];
  for (const other of cidrs) {
    if (other.metadata.name !== cidr.metadata.name) pushAll(others, rangesOf(other));
  }
  if (own.every((range) => others.some((other) => isWithin(range, other)))) return false;
  for (const { metadata } of addresses) {
    const address = parseAddress(metadata.name ?? '');
    if (address === undefined) continue;
    const mayBeFrom = (range: ParsedCidr): boolean => mayGive(range, address);
    if (own.some(mayBeFrom) && !others.some(mayBeFrom)) return true;
  }
  return false;
}

function rangesOf(cidr: ServiceCIDR): ParsedCidr[] {
  return (cidr.spec.cidrs ?? []).flatMap((text) => parseCidr(text) ?? []);
}

function isWithin(inner: ParsedCidr, outer: ParsedCidr): boolean {
  return (
    inner.family === outer.family &&
    inner.prefixLength >= outer.prefixLength &&
    networkOf(inner.network, outer) === outer.network
  );
}

/**
 * True when an address can have come from a range: not the first one, nor the last one of IPv4, which no allocator
 * gives (pkg/api/servicecidr, `PrefixContainsIP`). A larger range may have.
 */
function mayGive(range: ParsedCidr, { family, value }: ParsedAddress): boolean {
  if (family !== range.family || networkOf(value, range) !== range.network || value === range.network)
    return false;
  return family === 'IPv6' || networkOf(value + 1n, range) === range.network;
}

/** The bits of an address that the prefix of a range covers. */
function networkOf(value: bigint, { family, prefixLength }: ParsedCidr): bigint {
  const hostBits = BigInt(addressBits(family) - prefixLength);
  return (value >> hostBits) << hostBits;
}
