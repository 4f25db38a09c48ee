import { listAt, numberAt } from '../../../src/objects/json.ts';
import type { TestNetwork } from './network.ts';

const file = '/run/address-history';

/**
 * Which machines have had an address on an interface, as the kernel has said it through one socket for all of them: the order
 * is exact, and what a look now and then would miss is there.
 */
export class AddressHistory {
  readonly #network: TestNetwork;
  /** By the number that the switch's namespace has for a machine's. */
  readonly #names: ReadonlyMap<string, string>;

  private constructor(network: TestNetwork, names: ReadonlyMap<string, string>) {
    this.#network = network;
    this.#names = names;
  }

  /** Call once. @param machines names; what they have already is not seen. */
  static async start(network: TestNetwork, machines: readonly string[]): Promise<AddressHistory> {
    await network.script([
      `ip -o monitor address all-nsid >${file} 2>&1 </dev/null &`,
      `ip -json link show > ${file}-links`,
    ]);
    const links: unknown = JSON.parse(await read(network, `${file}-links`));
    const names = new Map<string, string>();
    for (const link of listAt({ links }, 'links')) {
      const machine = machines.find((name) => JSON.stringify(link).includes(`"lan-${name}"`));
      if (machine !== undefined) names.set(String(numberAt(link, 'link_netnsid')), machine);
    }
    return new AddressHistory(network, names);
  }

  /** Who had an address together, one after the other: each change; names are sorted. */
  async holders(address: string): Promise<readonly (readonly string[])[]> {
    const now = new Set<string>();
    const seen: (readonly string[])[] = [];
    for (const line of (await read(this.#network, file)).split('\n')) {
      const [, nsid = '', deleted, found] = /^\[nsid (\d+)\](Deleted )?.* inet6? ([^/]+)\//.exec(line) ?? [];
      const machine = this.#names.get(nsid);
      if (found !== address || machine === undefined) continue;
      if (deleted === undefined) now.add(machine);
      else now.delete(machine);
      const holders = [...now].toSorted();
      if (String(seen.at(-1)) !== String(holders)) seen.push(holders);
    }
    return seen;
  }
}

async function read(network: TestNetwork, name: string): Promise<string> {
  return (await network.outside.machine.host.exec('cat', [name])).stdout;
}
