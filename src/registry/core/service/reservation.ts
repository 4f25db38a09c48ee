import { AllocationError, AlreadyAllocatedError, RangeFullError } from '../../../allocation/address-range.ts';
import type { PortAllocation } from '../../../allocation/port-allocator.ts';
import { parseAddress, type IPFamily } from '../../../objects/address.ts';
import { goQuote } from '../../../objects/formats/go-text.ts';
import type { Service } from '../../../objects/types/core.generated.ts';
import type { IPAddress } from '../../../objects/types/networking.generated.ts';
import { type StatusError, internalError } from '../../../objects/status.ts';
import { invalid, invalidObject, required } from '../../validation/field-errors.ts';
import { nameIsPathSegment } from '../../../objects/names.ts';
import type { Reservation, SideObject, SideObjectKey, StrategyContext } from '../../generic/strategy.ts';
import type { ServiceAllocators } from './allocators.ts';
import { subject } from './type-rules.ts';

const addresses = { group: 'networking.k8s.io', plural: 'ipaddresses', namespace: '' } as const;
const path = 'spec.clusterIPs';

/**
 * The allocations and releases of one request for a Service: allocated at once, released when the write is stored
 * (`portallocator.PortAllocationOperation`). Addresses come with the IPAddress objects that stand for them. A dry run
 * changes nothing.
 */
export class ServiceReservation implements Reservation {
  readonly creates: SideObject[] = [];
  readonly deletes: SideObjectKey[] = [];
  readonly #allocators: ServiceAllocators;
  readonly #context: StrategyContext;
  readonly #ports: PortAllocation;
  readonly #taken: { readonly addresses: string[]; readonly ports: number[] } = { addresses: [], ports: [] };
  readonly #given: { readonly addresses: string[]; readonly ports: number[] } = { addresses: [], ports: [] };

  constructor(allocators: ServiceAllocators, context: StrategyContext) {
    this.#allocators = allocators;
    this.#context = context;
    this.#ports = context.dryRun ? allocators.nodePorts.dryRun() : allocators.nodePorts;
  }

  /**
   * Allocates an address.
   *
   * @param wanted any spelling of the address; "" for any of the family.
   * @returns the wanted text, or the allocated address.
   * @throws {StatusError} 422, or 500 when no address is free.
   */
  takeAddress(service: Service, family: IPFamily, wanted: string): string {
    const canonical = wanted === '' ? undefined : (parseAddress(wanted)?.canonical ?? wanted);
    try {
      const address =
        canonical === undefined ? this.#pick(service, family) : this.#claim(service, family, canonical);
      if (!this.#context.dryRun) this.#addObject(service, family, address, wanted);
      return wanted === '' ? address : wanted;
    } catch (error) {
      if (!(error instanceof AllocationError) && !(error instanceof InvalidIPAddress)) throw error;
      throw refusal(service, wanted, error);
    }
  }

  #claim(service: Service, family: IPFamily, address: string): string {
    if (this.#context.dryRun) return this.#allocators.dryRun(family, address);
    this.#allocators.allocate(address, () => checkParent(service, address));
    this.#taken.addresses.push(address);
    if (this.#isStored(address)) throw new AlreadyAllocatedError('IP', address);
    return address;
  }

  /** An address that is free here may belong to an IPAddress that is being written: then another one is tried. */
  #pick(service: Service, family: IPFamily): string {
    if (this.#context.dryRun) return this.#allocators.dryRun(family);
    for (;;) {
      const address = this.#allocators.allocateNext(family, () => this.#context.random());
      this.#taken.addresses.push(address);
      checkParent(service, address);
      if (!this.#isStored(address)) return address;
    }
  }

  #isStored(address: string): boolean {
    return this.#context.cluster.get(addresses.group, addresses.plural, '', address) !== undefined;
  }

  #addObject(service: Service, family: IPFamily, address: string, wanted: string): void {
    this.creates.push({
      ...addresses,
      name: address,
      object: ipAddressObject(service, family, address),
      nameTaken: () => refusal(service, wanted, new AlreadyAllocatedError('IP', address)),
    });
  }

  /** Releases an address with the commit, and removes its IPAddress object. Any spelling. */
  releaseAddress(text: string): void {
    const address = parseAddress(text)?.canonical;
    if (address === undefined || this.#context.dryRun) return;
    this.#given.addresses.push(address);
    this.deletes.push({ ...addresses, name: address });
  }

  /** Allocates a node port. @throws {AllocationError} */
  allocatePort(port: number): void {
    this.#ports.allocate(port);
    if (!this.#context.dryRun) this.#taken.ports.push(port);
  }

  /** Allocates any node port. @throws {AllocationError} when the range is full. */
  allocateAnyPort(): number {
    const port = this.#ports.allocateNext(() => this.#context.random());
    if (!this.#context.dryRun) this.#taken.ports.push(port);
    return port;
  }

  /** Releases a node port with the commit. */
  releasePort(port: number): void {
    if (!this.#context.dryRun) this.#given.ports.push(port);
  }

  commit(): void {
    for (const address of this.#taken.addresses) {
      if (this.creates.some(({ name }) => name === address)) this.#allocators.commit(address);
      else this.#allocators.rollback(address);
    }
    for (const address of this.#given.addresses) this.#allocators.release(address);
    for (const port of this.#given.ports) this.#allocators.nodePorts.release(port);
  }

  rollback(): void {
    for (const address of this.#taken.addresses) this.#allocators.rollback(address);
    for (const port of this.#taken.ports) this.#allocators.nodePorts.release(port);
  }
}

/** The error of an address that could not be allocated: 422, or 500 when no address is free. */
function refusal(service: Service, wanted: string, error: Error): StatusError {
  const { name = '' } = service.metadata;
  if (wanted === '' && error instanceof RangeFullError) {
    return internalError(
      `failed to allocate a serviceIP for Service ${goQuote(name)}: ${error.message}`,
      error,
    );
  }
  const what = wanted === '' ? 'failed to allocate IP' : `failed to allocate IP ${wanted}`;
  const { clusterIPs } = service.spec;
  return invalidObject(subject(service), [invalid(path, clusterIPs, `${what}: ${error.message}`)]);
}

/** The IPAddress object would be refused: the first error of an invalid Service name. */
class InvalidIPAddress extends Error {}

/** The rules of IPAddresses that a Service can break (`apis/networking/validation` ValidateIPAddress). */
function checkParent({ metadata }: Service, address: string): void {
  const { name = '' } = metadata;
  const field = 'spec.parentRef.name';
  const errors =
    name === ''
      ? [required(field)]
      : nameIsPathSegment(name, false).map((message) => invalid(field, name, message));
  if (errors.length === 0) return;
  const about = { group: addresses.group, kind: 'IPAddress', name: address };
  throw new InvalidIPAddress(invalidObject(about, errors).message);
}

/** The IPAddress of an allocated address (`ipallocator` createIPAddress); the pipeline sets uid and times. */
function ipAddressObject({ metadata }: Service, family: IPFamily, address: string): IPAddress {
  const { namespace = '', name = '' } = metadata;
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'IPAddress',
    metadata: {
      name: address,
      labels: {
        'ipaddress.kubernetes.io/ip-family': family,
        'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io',
      },
    },
    spec: { parentRef: { resource: 'services', namespace, name } },
  };
}
