import {
  emptyPlan,
  type ForwardingPlan,
  type NodeFamilyPlan,
} from '../../network/forwarding/forwarding-plan.ts';
import { pushAll } from '../../objects/lists.ts';
import { jsonEqual, isRecord } from '../../objects/json.ts';
import type { UdpDestination } from '../../network/forwarding/stale-flows.ts';
import type { ObjectKey } from '../../objects/meta.ts';
import { type IPFamily, ipFamilies } from '../../objects/address.ts';
import {
  type Command,
  type NftFamily,
  tableName,
  byText,
  difference,
  type Element,
  disjointRanges,
  allSetNames,
  isNftMap,
  isVerdictMap,
  type SetName,
  setNames,
} from './elements.ts';
import { type LayoutOptions, type TableLayout, tableLayout } from './layout.ts';
import { ListedTable, ListingReader } from './listed-table.ts';
import { Nft } from './nft.ts';
import { splitTransactions, Transactions } from './transactions.ts';
import { serviceChainDefinitions } from './port-elements.ts';
import { ProgrammedServices, type ProgrammingStep } from './programmed.ts';
import type { Host } from '../../host/host.ts';
import { defaultMarkMask } from './marks.ts';
import type { TableWatch } from './table-watch.ts';

/** The result of a sync. */
export interface SyncResult {
  readonly transactions: number;
  /** Elements that were added, replaced or deleted. */
  readonly elements: number;
  /** UDP destinations of Services that an agent before had written, and that are no Service's of the plan. */
  readonly former: readonly UdpDestination[];
}

/** The contents of a table, as this process has written them. */
interface KnownTable {
  readonly options: LayoutOptions;
  readonly chains: Map<string, number>;
  readonly programmed: ProgrammedServices;
  /** Elements that are not Services'. */
  readonly others: readonly Element[];
}

/** The contents of a table as nft listed them. */
interface ListedContents {
  readonly chains: ChainSizes;
  readonly listed: ListedTable;
  /** How many it took to make the table anew; 0: it was there. */
  readonly transactions: number;
  readonly former: readonly UdpDestination[];
}

/** Our table in one family. One sync at a time. */
export class NftablesTable {
  readonly #nft: Nft;
  readonly #family: IPFamily;
  readonly #markMask: number;
  readonly #recordsDrops: boolean;
  #known: KnownTable | undefined;
  /** The rules in the kernel are others. */
  #isRuined = false;
  /** The chains that this process has needed at some time. */
  readonly #ownChains = new Set<string>();

  constructor(nft: Nft, family: IPFamily, markMask: number, recordsDrops: boolean) {
    this.#recordsDrops = recordsDrops;
    this.#nft = nft;
    this.#family = family;
    this.#markMask = markMask;
  }

  /**
   * The next sync lists the table, compares it with the plan, and restores it.
   *
   * @param isRuined it makes the table anew.
   */
  invalidate(isRuined = false): void {
    this.#known = undefined;
    this.#isRuined ||= isRuined;
  }

  /**
   * Makes the table equal to the plan: from its known contents or, the first time and after a failure, from the
   * contents of the kernel.
   *
   * @param touched the Services whose plans may have changed since the last sync; undefined: all.
   * @throws {NftError} The next sync is then a full one.
   */
  async sync(
    plan: ForwardingPlan,
    node: NodeFamilyPlan,
    touched: Iterable<ObjectKey> | undefined,
  ): Promise<SyncResult> {
    const options = this.#layoutOptions(node);
    const others = nodeElements(node);
    let known = this.#known;
    this.#known = undefined;
    if (known !== undefined && !jsonEqual(known.options, options)) known = undefined;

    const programmed = known?.programmed ?? new ProgrammedServices(this.#family);
    const listed = known === undefined ? await this.#list(plan, tableLayout(options)) : undefined;
    const chains = new Map(known?.chains ?? listed?.chains);
    const steps = this.#steps(plan, programmed, touched, listed, known, others);
    let elements = 0;
    const texts = async function* (this: NftablesTable): AsyncGenerator<string> {
      const transactions = new Transactions(options.family, this.#recordsDrops);
      for (const step of steps) {
        await nextTurn();
        yield* this.#missingChains(chains, step, options);
        yield* transactions.push(step.changes);
        elements += step.changes.length;
        programmed.commit(step);
      }
      yield* transactions.flush();
      if (listed !== undefined) yield* this.#withoutForeignChains(chains, options);
    };
    const written = await this.#nft.runAll(texts.call(this));
    this.#known = { options, chains, programmed, others };
    const { transactions = 0, former = [] } = listed ?? {};
    return { transactions: written + transactions, elements, former };
  }

  /** The steps, by the known contents of the table. Each step is committed before the next is made. */
  *#steps(
    plan: ForwardingPlan,
    programmed: ProgrammedServices,
    touched: Iterable<ObjectKey> | undefined,
    listed: ListedContents | undefined,
    known: KnownTable | undefined,
    others: readonly Element[],
  ): Generator<ProgrammingStep> {
    if (listed === undefined) {
      const step = programmed.next(plan, touched);
      const changed = difference(byText(known?.others ?? []), others);
      yield { ...step, changes: [...changed, ...step.changes] };
    } else {
      yield* programmed.adopt(plan, listed.listed, others);
    }
  }

  /** Lists the contents of the kernel. A missing table, or one with other rules, is made anew. */
  async #list(plan: ForwardingPlan, layout: TableLayout): Promise<ListedContents> {
    const family = nftFamily(this.#family);
    // Terse, and the whole family: asked for one table, nft 1.0.6 fetches all of its elements.
    const rules = listedRules((await this.#nft.list(['-t'], 'ruleset', family)) ?? '{}');
    const expected = chainSizes(layout.commands);
    const isOurs =
      !this.#isRuined &&
      [...expected].every(([name, size]) => rules.chains.get(name) === size) &&
      allSetNames.every((name) => rules.sets.has(name));
    const listed = new ListedTable(plan, this.#family);
    if (!isOurs) {
      const table = { family, name: tableName };
      const former = await listedDestinations(this.#nft, this.#family, rules.sets);
      await this.#nft.run([{ add: { table } }, { delete: { table } }]);
      await this.#nft.runText(layout.text);
      await this.#nft.run(layout.commands);
      this.#isRuined = false;
      return { chains: expected, listed, transactions: 3, former };
    }
    const reader = new ListingReader((element) => listed.add(element));
    const sets = setNames.map((name) => listingOf(this.#family, name));
    await this.#nft.listEach(sets, (text) => reader.read(text));
    return { chains: rules.chains, listed, transactions: 0, former: listed.formerDestinations() };
  }

  /** The commands for the chains that a step needs. They may exist in part, if an agent was stopped. */
  #missingChains(
    chains: Map<string, number>,
    step: ProgrammingStep,
    options: LayoutOptions,
  ): readonly string[] {
    const commands: Command[] = [];
    for (const chain of step.chains.values()) {
      for (const definition of serviceChainDefinitions(chain, options)) {
        this.#ownChains.add(definition.name);
        const size = definition.commands.length - 1;
        if (chains.get(definition.name) === size) continue;
        chains.set(definition.name, size);
        const [add, ...rules] = definition.commands;
        if (add === undefined) continue;
        const flush = {
          flush: { chain: { family: options.family, table: tableName, name: definition.name } },
        };
        commands.push(add, flush);
        pushAll(commands, rules);
      }
    }
    return splitTransactions(commands);
  }

  /** Takes away chains of an agent before that nothing leads to any more, and those of somebody else. */
  #withoutForeignChains(chains: Map<string, number>, options: LayoutOptions): readonly string[] {
    const { family } = options;
    const layout = chainSizes(tableLayout(options).commands);
    const foreign = [...chains.keys()].filter((name) => !layout.has(name) && !this.#ownChains.has(name));
    for (const name of foreign) chains.delete(name);
    // They may lead to each other.
    return splitTransactions(
      (['flush', 'delete'] as const).flatMap((verb) =>
        foreign.map((name) => ({ [verb]: { chain: { family, table: tableName, name } } })),
      ),
    );
  }

  #layoutOptions({ podDetection, nodePortAddresses }: NodeFamilyPlan): LayoutOptions {
    return {
      family: nftFamily(this.#family),
      markMask: this.#markMask,
      podDetection: podDetection?.by === 'cidr' ? { by: 'cidr', cidrs: [] } : podDetection,
      nodePortsEverywhere: nodePortAddresses === 'all',
      recordsDrops: this.#recordsDrops,
    };
  }
}

/** Lets other work go on: a step takes some milliseconds. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** nft's name of a family. */
export function nftFamily(family: IPFamily): NftFamily {
  return family === 'IPv4' ? 'ip' : 'ip6';
}

/** The elements that no Service has anything to do with. */
function nodeElements({ podDetection, nodePortAddresses, serviceCIDRs }: NodeFamilyPlan): readonly Element[] {
  const podCidrs = podDetection?.by === 'cidr' ? podDetection.cidrs : [];
  return [
    ...disjointRanges(podCidrs).map((range): Element => ({ set: 'pod-cidrs', key: [range] })),
    ...disjointRanges(serviceCIDRs).map((range): Element => ({ set: 'service-cidrs', key: [range] })),
    ...(nodePortAddresses === 'all' ? [] : nodePortAddresses).map((address): Element => ({
      set: 'node-port-ips',
      key: [address],
    })),
  ];
}

/** Chains by name, and how many rules each has: enough to find one that is incomplete, or that was tampered with. */
type ChainSizes = ReadonlyMap<string, number>;

/** The chains that commands make. */
function chainSizes(commands: readonly Command[]): ChainSizes {
  const sizes = new Map<string, number>();
  for (const { add } of commands) count(add, sizes);
  return sizes;
}

/** Our table in the output of `nft -j -t list ruleset`: its chains, and the names of its sets and maps. */
function listedRules(listing: string): {
  readonly chains: ChainSizes;
  readonly sets: ReadonlySet<string>;
} {
  const chains = new Map<string, number>();
  const sets = new Set<string>();
  const parsed: unknown = JSON.parse(listing);
  const objects: unknown = isRecord(parsed) ? parsed['nftables'] : undefined;
  for (const object of Array.isArray(objects) ? objects : []) {
    count(object, chains);
    const set: unknown = isRecord(object) ? (object['set'] ?? object['map']) : undefined;
    if (isRecord(set) && set['table'] === tableName && typeof set['name'] === 'string') sets.add(set['name']);
  }
  return { chains, sets };
}

function count(object: unknown, sizes: Map<string, number>): void {
  if (!isRecord(object)) return;
  const { chain, rule } = object;
  if (isRecord(chain) && chain['table'] === tableName && typeof chain['name'] === 'string') {
    sizes.set(chain['name'], sizes.get(chain['name']) ?? 0);
  }
  if (isRecord(rule) && rule['table'] === tableName && typeof rule['chain'] === 'string') {
    sizes.set(rule['chain'], (sizes.get(rule['chain']) ?? 0) + 1);
  }
}

export interface NftablesWriterOptions {
  readonly host: Host;
  /** The bits of the packet mark that are ours (`marks.ts`); 1 to 2^32-1. */
  readonly markMask?: number;
  /** The kernel counts what it drops and refuses, for flows. Default false. */
  readonly recordsDrops?: boolean;
  /** Is told what is written. */
  readonly watch?: TableWatch;
}

/** Writes a node's plan into its kernel, as the tables `ip servicenet` and `ip6 servicenet`. One call at a time. */
export class NftablesWriter {
  readonly #nft: Nft;
  readonly #markMask: number;
  readonly #recordsDrops: boolean;
  readonly #tables = new Map<IPFamily, NftablesTable>();

  constructor({ host, markMask = defaultMarkMask, recordsDrops = false, watch }: NftablesWriterOptions) {
    this.#recordsDrops = recordsDrops;
    this.#nft = new Nft(host, watch);
    this.#markMask = markMask;
  }

  /**
   * Programs the kernel by the plan.
   *
   * @param touched the Services whose plans may have changed since the last sync; default all.
   * @throws {NftError} The next sync then reads the contents of the kernel.
   */
  async sync(plan: ForwardingPlan, touched?: Iterable<ObjectKey>): Promise<SyncResult> {
    try {
      return await this.#sync(plan, touched);
    } catch (error) {
      this.invalidate(); // A failed sync leaves the table unknown: the next one lists it.
      throw error;
    }
  }

  async #sync(plan: ForwardingPlan, touched: Iterable<ObjectKey> | undefined): Promise<SyncResult> {
    let transactions = 0;
    let elements = 0;
    const former: UdpDestination[] = [];
    for (const node of plan.node.families) {
      let table = this.#tables.get(node.family);
      if (table === undefined) {
        table = new NftablesTable(this.#nft, node.family, this.#markMask, this.#recordsDrops);
        this.#tables.set(node.family, table);
      }
      const written = await table.sync(plan, node, touched);
      transactions += written.transactions;
      elements += written.elements;
      pushAll(former, written.former);
    }
    return { transactions, elements, former };
  }

  /** The next sync lists the tables, compares them with the plan, and restores them. @param areRuined makes them anew. */
  invalidate(areRuined = false): void {
    for (const table of this.#tables.values()) table.invalidate(areRuined);
  }

  /** Ends the program that {@link sync} leaves behind for the next change. What was written stays. */
  async close(): Promise<void> {
    await this.#nft.close();
  }

  /** Removes the tables of all agents of this project. @returns the UDP destinations that were in them. @throws {NftError} */
  async cleanUp(): Promise<readonly UdpDestination[]> {
    this.#tables.clear();
    const former: UdpDestination[] = [];
    for (const family of ipFamilies) {
      const { sets } = listedRules((await this.#nft.list(['-t'], 'ruleset', nftFamily(family))) ?? '{}');
      pushAll(former, await listedDestinations(this.#nft, family, sets));
    }
    await this.#nft.run(
      ipFamilies.flatMap((family) => {
        const table = { family: nftFamily(family), name: tableName };
        return [{ add: { table } }, { delete: { table } }];
      }),
    );
    return former;
  }
}

/** The UDP destinations in the table of a family, as far as it has sets of ours. */
async function listedDestinations(
  nft: Nft,
  family: IPFamily,
  sets: ReadonlySet<string>,
): Promise<readonly UdpDestination[]> {
  const listed = new ListedTable(emptyPlan, family);
  const reader = new ListingReader((element) => listed.add(element));
  const names = setNames.filter((name) => sets.has(name) && isVerdictMap(name));
  if (names.length === 0) return [];
  await nft.listEach(
    names.map((name) => listingOf(family, name)),
    (text) => reader.read(text),
  );
  return listed.formerDestinations();
}

/** What nft is asked to list the elements of a set. */
function listingOf(family: IPFamily, name: SetName): string {
  return `${isNftMap(name) ? 'map' : 'set'} ${nftFamily(family)} ${tableName} ${name}`;
}
