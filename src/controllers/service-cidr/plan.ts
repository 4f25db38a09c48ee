/** The life cycle of a ServiceCIDR (pkg/controller/servicecidrs). Pure. */
import {
  addressBits,
  parseAddress,
  parseCidr,
  type ParsedAddress,
  type ParsedCidr,
} from '../../objects/address.ts';
import { pushAll } from '../../objects/lists.ts';
import type { Condition } from '../../objects/meta.ts';
import type { IPAddress, ServiceCIDR } from '../../objects/types/networking.generated.ts';

/** The finalizer of a ServiceCIDR while addresses need it. */
export const serviceCidrFinalizer = 'networking.k8s.io/service-cidr-finalizer';

/**
 * Milliseconds that a ServiceCIDR stays after its deletion, so that every allocator has seen it. It counts from when
 * the deletion was first seen, as clocks differ; Kubernetes' controller counts from the deletionTimestamp.
 */
const gracePeriodMs = 10_000;

/** The next step for a ServiceCIDR. */
export type CidrStep =
  | { do: 'nothing' }
  | { do: 'add finalizer' }
  | { do: 'remove finalizer' }
  | { do: 'set condition'; condition: Condition }
  /** Milliseconds after which to reconcile again. */
  | { do: 'wait'; milliseconds: number };

/** The input of a plan. */
export interface CidrInput {
  cidr: ServiceCIDR;
  /** All ServiceCIDRs, including this one. */
  cidrs: Iterable<ServiceCIDR>;
  /** The IPAddress objects of the API server's allocators. */
  addresses: Iterable<IPAddress>;
  /** Milliseconds since its deletion was first seen; 0 for one that is not deleted. */
  deletedForMs: number;
  /** Now, in RFC 3339, for conditions. */
  time: string;
}

/** The next step for a ServiceCIDR; after each write it is planned again. */
export function planCidr(input: CidrInput): CidrStep {
  const { cidr, deletedForMs } = input;
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
  const left = gracePeriodMs - deletedForMs;
  return left > 0 ? { do: 'wait', milliseconds: left } : { do: 'remove finalizer' };
}

/**
 * An equal condition stays as it is (`updateConditionIfNeeded`). The API server's own condition ("Kubernetes default
 * Service CIDR is ready") has another message and is overwritten; the API server does not change one that is ready.
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
 * gives (pkg/api/servicecidr, `PrefixContainsIP`). A larger range may give them.
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
