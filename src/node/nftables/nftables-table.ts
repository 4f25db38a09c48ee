import type { ForwardingPlan, NodeFamilyPlan } from '../../network/forwarding/forwarding-plan.ts';
import type { IPFamily } from '../../objects/service.ts';
import { type Command, type NftFamily, tableName } from './commands.ts';
import { difference } from './difference.ts';
import type { Element } from './elements.ts';
import { formerSlots } from './former-slots.ts';
import { type LayoutOptions, type TableLayout, tableLayout } from './layout.ts';
import { readElements } from './listing.ts';
import type { Nft } from './nft.ts';
import { nodeElements } from './node-elements.ts';
import { pickChainDefinitions } from './pick-chain.ts';
import { Programmed, type Step } from './programmed.ts';
import { isMap, setNames } from './sets.ts';
import { type ChainSizes, chainSizes, listedChains } from './table-chains.ts';
import { cutCommands, transactions } from './transactions.ts';

/** What a sync wrote. */
export interface Written {
  readonly transactions: number;
  /** Elements that were added, replaced or deleted. */
  readonly elements: number;
}

/** What the kernel has, as far as we know. */
interface Mirror {
  readonly layout: TableLayout;
  readonly chains: Map<string, number>;
  readonly programmed: Programmed;
  /** Elements that are not Services'. */
  readonly others: readonly Element[];
}

/** Our table in one family. One sync at a time. */
export class NftablesTable {
  readonly #nft: Nft;
  readonly #family: IPFamily;
  readonly #markMask: number;
  #mirror: Mirror | undefined;

  constructor(nft: Nft, family: IPFamily, markMask: number) {
    this.#nft = nft;
    this.#family = family;
    this.#markMask = markMask;
  }

  /** Makes the next sync a full one. */
  forget(): void {
    this.#mirror = undefined;
  }

  /**
   * Makes the table what the plan says: by what is known of the table, or, the first time and after a failure, by what
   * the kernel has in it.
   *
   * @throws {NftError} The next sync is then a full one.
   */
  async sync(plan: ForwardingPlan, node: NodeFamilyPlan): Promise<Written> {
    const options = this.#layoutOptions(node);
    const layout = tableLayout(options);
    const known = this.#mirror?.layout.name === layout.name ? this.#mirror : undefined;
    this.#mirror = undefined;

    const others = nodeElements(node);
    const read = known === undefined ? await this.#read(layout) : undefined;
    const programmed = known?.programmed ?? new Programmed(this.#family);
    const chains = new Map(known?.chains ?? read?.chains);
    const step =
      read === undefined
        ? programmed.next(plan)
        : programmed.fromKernel(plan, read.elements, formerSlots(read.elements), others);
    const changes = [...difference(known?.others ?? [], known === undefined ? [] : others), ...step.changes];

    const texts = [
      ...this.#missingChains(chains, step, options),
      ...transactions(nftFamily(this.#family), changes),
    ];
    for (const text of texts) await this.#nft.run(text);
    programmed.commit(step);
    this.#mirror = { layout, chains, programmed, others };
    const made = read?.isNew === true ? 1 : 0;
    return { transactions: texts.length + made, elements: changes.length };
  }

  /** The elements in the kernel. A table that is not there, or whose rules are not ours, is made anew. */
  async #read(layout: TableLayout): Promise<{ chains: ChainSizes; elements: Element[]; isNew: boolean }> {
    const family = nftFamily(this.#family);
    const listing = await this.#nft.list(['-t'], 'table', family, tableName);
    const chains = listing === undefined ? new Map<string, number>() : listedChains(listing);
    const expected = chainSizes(layout.commands);
    if ([...expected].some(([name, size]) => chains.get(name) !== size)) {
      const table = { family, name: tableName };
      await this.#nft.run([{ add: { table } }, { delete: { table } }]);
      await this.#nft.runText(layout.text);
      await this.#nft.run(layout.commands);
      return { chains: expected, elements: [], isNew: true };
    }
    const elements: Element[] = [];
    for (const name of setNames) {
      const set = await this.#nft.list([], isMap(name) ? 'map' : 'set', family, tableName, name);
      for (const element of await readElements(name, set ?? '')) elements.push(element);
    }
    return { chains, elements, isNew: false };
  }

  /** What makes the chains that a step needs. They may be there in part, if an agent was stopped. */
  #missingChains(chains: Map<string, number>, step: Step, options: LayoutOptions): readonly string[] {
    const commands: Command[] = [];
    for (const chain of step.chains.values()) {
      for (const definition of pickChainDefinitions(chain, options)) {
        const size = definition.commands.length - 1;
        if (chains.get(definition.name) === size) continue;
        chains.set(definition.name, size);
        const [add, ...rules] = definition.commands;
        if (add === undefined) continue;
        const flush = { flush: { chain: { family: options.family, table: tableName, name: definition.name } } };
        commands.push(add, flush, ...rules);
      }
    }
    return cutCommands(commands);
  }

  #layoutOptions({ podDetection, nodePortAddresses }: NodeFamilyPlan): LayoutOptions {
    return {
      family: nftFamily(this.#family),
      markMask: this.#markMask,
      podDetection: podDetection?.by === 'cidr' ? { by: 'cidr', cidrs: [] } : podDetection,
      nodePortsEverywhere: nodePortAddresses === 'all',
    };
  }
}

/** nft's name of a family. */
export function nftFamily(family: IPFamily): NftFamily {
  return family === 'IPv4' ? 'ip' : 'ip6';
}
