import type { AddressOnLink } from './conflict-probe.ts';
import { isPlaced, type Link, ownLinkName } from './links.ts';

/** The name of our own interface on a link ({@link ownLinkName}). */
export function ownNameFor({ index }: Link): string {
  return `servicenet${index}`;
}

/** Which interfaces carry the addresses that are announced, and which addresses they have. */
export class Carriers {
  /** All interfaces, ours too. */
  readonly links: readonly Link[];
  readonly #on: 'macvlan' | 'interface';

  /** @param on `macvlan`: an interface of ours on each; `interface`: the interface itself. */
  constructor(links: readonly Link[], on: 'macvlan' | 'interface') {
    this.links = links;
    this.#on = on;
  }

  /** The interface that carries addresses for a link; undefined: there is none yet. */
  of(link: Link): Link | undefined {
    if (this.#on === 'interface') return link;
    return this.links.find(({ name }) => name === ownNameFor(link));
  }

  /** The name of the carrier for an interface. */
  nameOn(uplink: string): string | undefined {
    const link = this.links.find(({ name }) => name === uplink);
    return link === undefined ? undefined : this.of(link)?.name;
  }

  /** Our addresses, and the interfaces that have them. */
  placed(): Map<string, readonly string[]> {
    const found = new Map<string, readonly string[]>();
    for (const link of this.links) {
      for (const address of this.placedOn(link)) {
        found.set(address, [...(found.get(address) ?? []), link.name]);
      }
    }
    return found;
  }

  /** Our addresses, and the interfaces with a link for which they are carried. */
  announced(): readonly AddressOnLink[] {
    return this.links.flatMap((link) => {
      const carrier = link.hasCarrier && !ownLinkName.test(link.name) ? this.of(link) : undefined;
      if (carrier === undefined) return [];
      return this.placedOn(carrier).map((address) => ({ address, link }));
    });
  }

  /** Our addresses on an interface, canonical. */
  placedOn({ name, addresses }: Link): readonly string[] {
    if (this.#on === 'macvlan' && !ownLinkName.test(name)) return [];
    return addresses.filter(isPlaced).map(({ address }) => address.canonical);
  }
}
