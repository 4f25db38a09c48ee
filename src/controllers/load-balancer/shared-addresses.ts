import type { IPFamily } from '../../objects/address.ts';
import type { Holding } from './holding.ts';
import type { AddressRequest } from './request.ts';

/**
 * Which addresses a Service might join, without a walk over all of them: addresses are filed under what all of their
 * holders have in common, and by the ports in use, so that a group in which a wanted port is taken everywhere is
 * passed over at once.
 */
export class SharedAddresses {
  readonly #groups = new Map<string, Group>();
  readonly #filed = new Map<string, Filing>(); // address -> where it is filed

  /** Files an address anew after its claims changed. */
  update(address: string, holding: Holding | undefined): void {
    const old = this.#filed.get(address);
    if (old !== undefined) this.#remove(address, old);
    this.#filed.delete(address);
    const [first] = holding?.claims.values() ?? [];
    if (holding?.origin === undefined || first === undefined) return;
    const filing: Filing = {
      group: groupOf(holding.origin.pool, holding.family, first),
      ports: [...holding.ports.keys()],
    };
    this.#filed.set(address, filing);
    let group = this.#groups.get(filing.group);
    if (group === undefined)
      this.#groups.set(filing.group, (group = { addresses: new Set(), byPort: new Map() }));
    group.addresses.add(address);
    for (const port of filing.ports) {
      const users = group.byPort.get(port);
      if (users === undefined) group.byPort.set(port, new Set([address]));
      else users.add(address);
    }
  }

  /** Addresses that a pool gave and whose holders leave the wanted ports free, at most {@link MAX_CANDIDATES}. */
  candidates(pool: string, family: IPFamily, request: AddressRequest): string[] {
    const group = this.#groups.get(groupOf(pool, family, request));
    if (group === undefined) return [];
    const taken = request.ports.flatMap((port) => group.byPort.get(port) ?? []);
    if (taken.some((users) => users.size === group.addresses.size)) return [];
    const free: string[] = [];
    let tries = 0;
    for (const address of group.addresses) {
      if (!taken.some((users) => users.has(address))) free.push(address);
      if (free.length >= MAX_CANDIDATES || ++tries >= MAX_TRIES) break;
    }
    return free;
  }

  #remove(address: string, { group: name, ports }: Filing): void {
    const group = this.#groups.get(name);
    if (group === undefined) return;
    group.addresses.delete(address);
    for (const port of ports) {
      const users = group.byPort.get(port);
      users?.delete(address);
      if (users?.size === 0) group.byPort.delete(port);
    }
    if (group.addresses.size === 0) this.#groups.delete(name);
  }
}

/** Beyond this many addresses with a wanted port a fresh address is given instead. */
const MAX_TRIES = 256;
/** More than one, because the holders of the first may not consent. */
const MAX_CANDIDATES = 16;

interface Group {
  readonly addresses: Set<string>;
  readonly byPort: Map<string, Set<string>>;
}

interface Filing {
  readonly group: string;
  readonly ports: readonly string[];
}

/** Without a key only Services of one namespace meet; with one, all that have it (consent is checked later). */
function groupOf(pool: string, family: IPFamily, { sharingKey, namespace, backend }: AddressRequest): string {
  const circle = sharingKey === '' ? `namespace ${namespace}` : `key ${sharingKey}`;
  return JSON.stringify([pool, family, circle, backend]);
}
