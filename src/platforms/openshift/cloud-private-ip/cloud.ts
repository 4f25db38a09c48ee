import type { ParsedAddress } from '../../../objects/address.ts';

/** The address is at the node already. */
export class AlreadyAssignedError extends Error {
  override readonly name = 'AlreadyAssignedError';
}

/** The address is not at the node. */
export class NotAssignedError extends Error {
  override readonly name = 'NotAssignedError';
}

/** A cloud that gives addresses to the machines of nodes. Calls about one address are made one after the other. */
export interface Cloud {
  /** Whether {@link move} works: on others an address is released and assigned again. */
  readonly canMove: boolean;
  /** @throws {AlreadyAssignedError}, or why the cloud refuses it. */
  assign(address: ParsedAddress, node: string): Promise<void>;
  /** @throws {NotAssignedError}, or why the cloud refuses it. */
  release(address: ParsedAddress, node: string): Promise<void>;
  /** @throws why the cloud refuses it. */
  move(address: ParsedAddress, from: string, to: string): Promise<void>;
  /** The Node was deleted. A cloud that does not track its machines releases the Node's addresses. */
  nodeGone?(node: string): void;
}

export interface InMemoryCloudOptions {
  readonly canMove?: boolean;
  /** Addresses that a machine may have; default: any number. */
  readonly capacity?: number;
  /** Waits before each answer; default: not at all. */
  readonly delay?: () => Promise<void>;
  /** Why a call fails; undefined: it does not. Default: none does. */
  readonly failure?: (call: 'assign' | 'release' | 'move', node: string) => string | undefined;
}

/** A cloud without machines: it keeps the node of each address. */
export class InMemoryCloud implements Cloud {
  readonly #options: InMemoryCloudOptions;
  readonly #nodeOf = new Map<string, string>();

  constructor(options: InMemoryCloudOptions = {}) {
    this.#options = options;
  }

  get canMove(): boolean {
    return this.#options.canMove ?? false;
  }

  /** The node of each address. */
  get assigned(): ReadonlyMap<string, string> {
    return this.#nodeOf;
  }

  async assign({ canonical }: ParsedAddress, node: string): Promise<void> {
    await this.#answer('assign', node);
    if (this.#nodeOf.get(canonical) === node) throw new AlreadyAssignedError(`${canonical} is at ${node}`);
    this.#give(canonical, node);
  }

  async release({ canonical }: ParsedAddress, node: string): Promise<void> {
    await this.#answer('release', node);
    if (this.#nodeOf.get(canonical) !== node) throw new NotAssignedError(`${canonical} is not at ${node}`);
    this.#nodeOf.delete(canonical);
  }

  async move({ canonical }: ParsedAddress, from: string, to: string): Promise<void> {
    await this.#answer('move', to);
    if (this.#nodeOf.get(canonical) !== from) throw new NotAssignedError(`${canonical} is not at ${from}`);
    this.#nodeOf.delete(canonical);
    this.#give(canonical, to);
  }

  nodeGone(node: string): void {
    for (const [address, holder] of this.#nodeOf) if (holder === node) this.#nodeOf.delete(address);
  }

  async #answer(call: 'assign' | 'release' | 'move', node: string): Promise<void> {
    await this.#options.delay?.();
    const why = this.#options.failure?.(call, node);
    if (why !== undefined) throw new Error(why);
  }

  #give(address: string, node: string): void {
    const other = this.#nodeOf.get(address);
    if (other !== undefined) throw new Error(`${address} is at ${other}`);
    const { capacity = Number.POSITIVE_INFINITY } = this.#options;
    const has = [...this.#nodeOf.values()].filter((each) => each === node).length;
    if (has >= capacity) throw new Error(`${node} has no capacity for another address`);
    this.#nodeOf.set(address, node);
  }
}
