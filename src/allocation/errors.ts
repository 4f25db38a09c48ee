/** Base of everything an allocator refuses. Messages are Kubernetes' own, because clients see them. */
export abstract class AllocationError extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** Nothing is free: kube-apiserver answers it with 500, not 422 (`ipallocator.ErrFull`). */
export class RangeFullError extends AllocationError {
  constructor() {
    super('range is full');
  }
}

/** It is allocated already (`ipallocator.ErrAllocated`, `portallocator.ErrAllocated`). */
export class AlreadyAllocatedError extends AllocationError {
  readonly wanted: string | number;

  constructor(what: 'IP' | 'port', wanted: string | number) {
    super(`provided ${what} is already allocated`);
    this.wanted = wanted;
  }
}

/** Outside of the range, or an address of it that may not be used (network, broadcast). */
export class NotInRangeError extends AllocationError {
  readonly wanted: string | number;
  /** The range as users write it: `10.96.0.0/16`, `30000-32767`. */
  readonly range: string;

  constructor(what: 'IP' | 'port', wanted: string | number, range: string) {
    super(
      what === 'IP'
        ? `the provided IP (${wanted}) is not in the valid range. The range of valid IPs is ${range}`
        : `provided port is not in the valid range. The range of valid ports is ${range}`,
    );
    this.wanted = wanted;
    this.range = range;
  }
}

/** Not an address, or not written as Kubernetes prints it: allocators do not guess. */
export class NotCanonicalError extends AllocationError {
  readonly wanted: string;

  constructor(wanted: string) {
    super(`not a canonical address: ${JSON.stringify(wanted.slice(0, 64))}`);
    this.wanted = wanted;
  }
}
