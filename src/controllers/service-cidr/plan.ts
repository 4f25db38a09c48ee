/** The life of a ServiceCIDR (pkg/controller/servicecidrs). Pure. */
import { parseAddress, parseCidr, type ParsedCidr } from '../../objects/address.ts';
import { addressBits } from '../../objects/address.ts';
import type { Condition } from '../../objects/meta.ts';
import type { IPAddress, ServiceCIDR } from '../../objects/networking.ts';

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

/** One write per transition: a condition that says so already stays as it is. */
function condition(
  { cidr, time }: CidrInput,
  status: 'True' | 'False',
  reason: string,
  message: string,
): CidrStep {
  const old = cidr.status.conditions?.find(({ type }) => type === 'Ready');
  // The API server words the condition of its own ServiceCIDR differently.
  if (old?.status === status && old.reason === reason && (status === 'True' || old.message === message)) {
    return { do: 'nothing' };
  }
  return {
    do: 'set condition',
    condition: { type: 'Ready', status, lastTransitionTime: time, reason, message },
  };
}

/** True when an address would be in no ServiceCIDR without this one. */
function orphansAddresses({ cidr, cidrs, addresses }: CidrInput): boolean {
  const own = rangesOf(cidr);
  const others: ParsedCidr[] = [];
  for (const other of cidrs) {
    if (other.metadata.name !== cidr.metadata.name) others.push(...rangesOf(other));
  }
  const open = own.filter((range) => !others.some((other) => contains(other, range, range.network)));
  if (open.length === 0) return false;
  for (const { metadata } of addresses) {
    const address = parseAddress(metadata.name ?? '');
    if (address === undefined) continue;
    const isIn = (range: ParsedCidr): boolean =>
      range.family === address.family && contains(range, undefined, address.value);
    if (open.some(isIn) && !others.some(isIn)) return true;
  }
  return false;
}

function rangesOf(cidr: ServiceCIDR): ParsedCidr[] {
  return (cidr.spec.cidrs ?? []).flatMap((text) => parseCidr(text) ?? []);
}

/** True when a range holds an address, or with `inner` that whole range. */
function contains(outer: ParsedCidr, inner: ParsedCidr | undefined, value: bigint): boolean {
  if (inner !== undefined && (inner.family !== outer.family || inner.prefixLength < outer.prefixLength)) {
    return false;
  }
  const hostBits = BigInt(addressBits(outer.family) - outer.prefixLength);
  return value >> hostBits === outer.network >> hostBits;
}
