import { formatAddress, parseAddress, type IPFamily } from '../../objects/address.ts';
import { AttachmentError } from '../../network/attachments/errors.ts';
import type { HostLocalRange } from '../../network/attachments/ipam.ts';

interface Holder {
  readonly uid: string;
  readonly interface: string;
}

/**
 * The addresses of the plugin `host-local`: given on each node by itself, so that two nodes may give the same one. The
 * plugin keeps them in files of the node; here they are read from the Pods at the start.
 */
export class HostLocalAddresses {
  /** By node and network, then by address. */
  readonly #holders = new Map<string, Map<string, Holder>>();
  /** By node, network and the number of the set: the last address that was given. */
  readonly #last = new Map<string, bigint>();

  /** Records an address that a Pod has. @param scope node and network. @param address canonical. */
  observe(scope: string, address: string, holder: Holder): void {
    const holders = this.#holders.get(scope) ?? new Map<string, Holder>();
    this.#holders.set(scope, holders);
    if (!holders.has(address)) holders.set(address, holder);
  }

  /**
   * One address of each set: the present one of the interface, the requested one, else the one after the last that
   * was given.
   *
   * @param asked addresses of the selection, with or without a prefix length.
   * @throws {AttachmentError} where a set has none left, or a requested one cannot be given.
   */
  assign(
    scope: string,
    sets: readonly (readonly HostLocalRange[])[],
    asked: readonly string[],
    holder: Holder,
  ): readonly string[] {
    const wanted = new Set(asked.map((text) => parseAddress(text.split('/')[0] ?? '')?.canonical ?? text));
    const chosen = sets.map((set, index) => this.#choose(`${scope}#${index}`, scope, set, wanted, holder));
    if (wanted.size > 0) {
      throw new AttachmentError(`failed to allocate all requested IPs: ${[...wanted].join(',')}`);
    }
    for (const address of chosen) this.observe(scope, address, holder);
    return chosen;
  }

  /** Gives back the addresses of a Pod. */
  release(uid: string): void {
    for (const [scope, holders] of this.#holders) {
      for (const [address, holder] of holders) if (holder.uid === uid) holders.delete(address);
      if (holders.size === 0) this.#holders.delete(scope);
    }
  }

  #choose(
    counter: string,
    scope: string,
    set: readonly HostLocalRange[],
    wanted: Set<string>,
    holder: Holder,
  ): string {
    const holders = this.#holders.get(scope);
    const family = set[0]?.usable.family ?? 'IPv4';
    const isIn = (address: string): boolean => {
      const parsed = parseAddress(address);
      return parsed !== undefined && set.some(({ usable }) => usable.contains(parsed.family, parsed.value));
    };
    const isOwn = (of: Holder | undefined): boolean =>
      of?.uid === holder.uid && of.interface === holder.interface;
    for (const address of wanted) {
      if (!isIn(address)) continue;
      wanted.delete(address);
      const other = holders?.get(address);
      if (other === undefined || isOwn(other)) return address;
      throw new AttachmentError(
        `requested IP address ${address} is not available in range set ${rangesText(family, set)}`,
      );
    }
    for (const [address, of] of holders ?? []) if (isOwn(of) && isIn(address)) return address;
    const value = nextFree(
      set,
      this.#last.get(counter),
      (each) => holders?.has(formatAddress(family, each)) === true,
    );
    if (value === undefined) {
      const why = `no IP addresses available in range set: ${rangesText(family, set)}`;
      throw new AttachmentError(`failed to allocate for range ${counter.split('#').at(-1) ?? ''}: ${why}`);
    }
    this.#last.set(counter, value);
    return formatAddress(family, value);
  }
}

/** The next free address after `last`, then from the start; gateways are not given. */
function nextFree(
  set: readonly HostLocalRange[],
  last: bigint | undefined,
  isTaken: (value: bigint) => boolean,
): bigint | undefined {
  const at =
    last === undefined ? -1 : set.findIndex(({ usable }) => usable.first <= last && last <= usable.last);
  const parts = set.map(({ usable, gateway }) => ({ first: usable.first, last: usable.last, gateway }));
  const current = parts[at];
  const ordered =
    current === undefined || last === undefined
      ? parts
      : [
          { ...current, first: last + 1n },
          ...parts.slice(at + 1),
          ...parts.slice(0, at),
          { ...current, last },
        ];
  for (const { first, last: end, gateway } of ordered) {
    for (let value = first; value <= end; value++) {
      if (value !== gateway && !isTaken(value)) return value;
    }
  }
  return undefined;
}

function rangesText(family: IPFamily, set: readonly HostLocalRange[]): string {
  const text = (value: bigint): string => formatAddress(family, value);
  return set.map(({ usable }) => `${text(usable.first)}-${text(usable.last)}`).join(',');
}
