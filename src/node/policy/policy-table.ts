import { parseAddress } from '../../objects/address.ts';
import { at, listAt, textAt } from '../../objects/json.ts';
import type { Nft } from '../nftables/nft.ts';
import { splitTransactions } from '../nftables/transactions.ts';
import {
  baseChains,
  deniedByPolicies,
  policyTable,
  recordingTableText,
  subjectMaps,
  baseCommands,
  chainCommands,
  createSet,
  elementCommand,
  isFixed,
  podElement,
  subjectElement,
  subjectMap,
} from './policy-commands.ts';
import { Readable } from 'node:stream';
import {
  type FilterSet,
  type FilterStage,
  type PolicyPlan,
  selfSets,
} from '../../network/policy/policy-plan.ts';
import { pushAll } from '../../objects/lists.ts';
import type { Command } from '../nftables/elements.ts';

/** The changing contents of the kernel. */
export interface ListedPolicyTable {
  /** By name; of ranges and ports, which are never changed, the elements are left out. */
  readonly sets: ReadonlyMap<string, ReadonlySet<string>>;
  /** The number of rules of each chain: fewer than planned if an agent was stopped. */
  readonly chains: ReadonlyMap<string, number>;
  /** By the name of the map: the chain of an address. */
  readonly subjects: ReadonlyMap<string, ReadonlyMap<string, string>>;
}

/**
 * Reads the table.
 *
 * @returns undefined where there is none, or parts that are always there are missing: it is to be made.
 * @throws {NftError}
 */
async function readTable(nft: Nft, recordsDrops: boolean): Promise<ListedPolicyTable | undefined> {
  const text = await nft.list([], 'table', policyTable.family, policyTable.name);
  if (text === undefined) return undefined;
  const sets = new Map<string, ReadonlySet<string>>();
  const chains = new Map<string, number>();
  const subjects = new Map<string, ReadonlyMap<string, string>>();
  let denied = 0;
  for (const item of listAt(JSON.parse(text), 'nftables')) {
    const chain = textAt(item, 'chain', 'name');
    const set = textAt(item, 'set', 'name');
    const map = textAt(item, 'map', 'name');
    const ruleOf = textAt(item, 'rule', 'chain');
    if (chain !== '') chains.set(chain, 0);
    if (ruleOf !== '') chains.set(ruleOf, (chains.get(ruleOf) ?? 0) + 1);
    if (deniedByPolicies.some(({ name }) => name === set)) denied++;
    else if (set !== '') sets.set(set, new Set(listAt(item, 'set', 'elem').flatMap(elementText)));
    if (map !== '') subjects.set(map, new Map(listAt(item, 'map', 'elem').flatMap(subjectOf)));
  }
  const always = baseChains(recordsDrops);
  const isWhole =
    denied === (recordsDrops ? deniedByPolicies.length : 0) &&
    [...always].every(([name, rules]) => chains.get(name) === rules) &&
    subjectMaps.every((name) => subjects.has(name));
  for (const name of always.keys()) chains.delete(name);
  return isWhole ? { sets, chains, subjects } : undefined;
}

/** The text of an address or an endpoint; nothing for what is neither. */
function elementText(json: unknown): string[] {
  if (typeof json === 'string') return [canonical(json)];
  const [address, protocol, port] = listAt(json, 'concat');
  // Who is connected with itself.
  if (typeof address === 'string' && address === protocol) return [canonical(address)];
  if (typeof address !== 'string' || typeof protocol !== 'string' || typeof port !== 'number') return [];
  return [`${canonical(address)} ${protocol} ${port}`];
}

function subjectOf(json: unknown): [string, string][] {
  const pair: unknown[] = Array.isArray(json) ? json : [];
  const [address, verdict] = pair;
  const target = at(verdict, 'goto', 'target');
  return typeof address === 'string' && typeof target === 'string' ? [[canonical(address), target]] : [];
}

function canonical(address: string): string {
  return parseAddress(address)?.canonical ?? address;
}

/** The result of a sync. */
export interface PolicySyncResult {
  readonly transactions: number;
  readonly commands: number;
}

/** Elements of one command: a transaction holds some of them. */
const elementsPerCommand = 500;

/**
 * Writes a node's filter into its kernel, as the table `inet servicenet-policy`. What the kernel has is remembered, and
 * read again when it is not known: at the start, and after a failure. One call at a time.
 */
export class PolicyTable {
  readonly #nft: Nft;
  readonly #recordsDrops: boolean;
  /** The contents of the kernel; `none`: no table. Undefined: unknown. */
  #known: ListedPolicyTable | 'none' | undefined;
  /** Something that is not compared may be missing. */
  #isRuined = false;

  /** @param recordsDrops whether the kernel counts what it drops. */
  constructor(nft: Nft, recordsDrops = false) {
    this.#nft = nft;
    this.#recordsDrops = recordsDrops;
  }

  /** The next sync reads what the kernel has. @param isRuined it makes the table anew. */
  invalidate(isRuined = false): void {
    this.#known = undefined;
    this.#isRuined ||= isRuined;
  }

  /** Programs the kernel by the plan. @throws {NftError} The next sync then reads the contents of the kernel. */
  async sync(plan: PolicyPlan): Promise<PolicySyncResult> {
    try {
      const isRuined = this.#isRuined;
      const present = isRuined
        ? 'none'
        : (this.#known ?? (await readTable(this.#nft, this.#recordsDrops)) ?? 'none');
      this.#known = undefined;
      // Without a policy there is no need for a table.
      if (present === 'none' && plan.chains.size === 0) {
        if (isRuined) await this.cleanUp();
        this.#isRuined = false;
        this.#known = present;
        return { transactions: 0, commands: 0 };
      }
      if (present === 'none' && this.#recordsDrops) await this.#nft.runText(recordingTableText());
      const commands =
        present === 'none'
          ? [...baseCommands(this.#recordsDrops), ...changes(nothing, plan, this.#recordsDrops)]
          : changes(present, plan, this.#recordsDrops);
      const transactions = splitTransactions(commands);
      if (transactions.length > 0) await this.#nft.runAll(Readable.from(transactions));
      this.#known = contentsOf(plan);
      this.#isRuined = false;
      return { transactions: transactions.length, commands: commands.length };
    } catch (error) {
      this.invalidate();
      throw error;
    }
  }

  /** Ends the program that {@link sync} leaves behind for the next change. What was written stays. */
  async close(): Promise<void> {
    await this.#nft.close();
  }

  /** Takes away all that was ever made. @throws {NftError} */
  async cleanUp(): Promise<void> {
    this.invalidate();
    await this.#nft.run([{ add: { table: policyTable } }, { delete: { table: policyTable } }]);
  }
}

/** As it is made. */
const nothing: ListedPolicyTable = {
  sets: new Map(Object.values(selfSets).map((name) => [name, new Set<string>()])),
  chains: new Map(),
  subjects: new Map(),
};

function contentsOf({ sets, chains, subjects }: PolicyPlan): ListedPolicyTable {
  return {
    sets: new Map([...sets].map(([name, { elements }]) => [name, elements])),
    chains: new Map([...chains].map(([name, rules]) => [name, rules.length])),
    subjects: bySubjectMap(subjects),
  };
}

function bySubjectMap(subjects: PolicyPlan['subjects']): Map<string, Map<string, string>> {
  const maps = new Map<string, Map<string, string>>(
    subjectMaps.map((name) => [name, new Map<string, string>()]),
  );
  for (const stage of ['ingress', 'egress', 'firewall'] satisfies readonly FilterStage[]) {
    for (const [address, chain] of subjects[stage]) maps.get(subjectMap(stage, address))?.set(address, chain);
  }
  return maps;
}

/** References are added after their target, and removed before it. */
function changes(present: ListedPolicyTable, plan: PolicyPlan, recordsDrops: boolean): Command[] {
  const commands: Command[] = [];
  for (const [name, set] of plan.sets) pushAll(commands, setChanges(name, set, present.sets.get(name)));
  // Chains of policies before those that lead to them.
  const isNew = ([name, rules]: readonly [string, readonly unknown[]]): boolean =>
    present.chains.get(name) !== rules.length;
  const made = [...plan.chains].filter(isNew).sort(([a], [b]) => rank(a) - rank(b));
  for (const [name, rules] of made) pushAll(commands, chainCommands(name, rules, plan.sets, recordsDrops));
  for (const [map, wanted] of bySubjectMap(plan.subjects)) {
    pushAll(commands, subjectChanges(map, present.subjects.get(map) ?? new Map(), wanted));
  }
  const gone = [...present.chains.keys()]
    .filter((name) => !plan.chains.has(name))
    .sort((a, b) => rank(b) - rank(a));
  for (const name of gone) commands.push({ delete: { chain: { ...inTable, name } } });
  for (const name of present.sets.keys()) {
    if (!plan.sets.has(name)) commands.push({ delete: { set: { ...inTable, name } } });
  }
  return commands;
}

const inTable = { family: policyTable.family, table: policyTable.name };

function rank(chain: string): number {
  return chain.startsWith('policy-') ? 0 : 1;
}

function setChanges(name: string, set: FilterSet, present: ReadonlySet<string> | undefined): Command[] {
  if (present === undefined) {
    // With its elements: a set of ranges or ports is never changed, and must be whole.
    if (isFixed(set)) return [createSet(name, set, set.elements)];
    return [createSet(name, set, new Set()), ...elementChanges('add', name, set, [...set.elements])];
  }
  if (present === set.elements || isFixed(set)) return [];
  const gone = [...present].filter((element) => !set.elements.has(element));
  const added = [...set.elements].filter((element) => !present.has(element));
  return [...elementChanges('delete', name, set, gone), ...elementChanges('add', name, set, added)];
}

function elementChanges(
  verb: 'add' | 'delete',
  name: string,
  set: FilterSet,
  elements: readonly string[],
): Command[] {
  const commands: Command[] = [];
  for (let at = 0; at < elements.length; at += elementsPerCommand) {
    const part = elements.slice(at, at + elementsPerCommand);
    commands.push(
      elementCommand(
        verb,
        name,
        part.map((element) => podElement(set, element)),
      ),
    );
  }
  return commands;
}

function subjectChanges(
  map: string,
  present: ReadonlyMap<string, string>,
  wanted: ReadonlyMap<string, string>,
): Command[] {
  const commands: Command[] = [];
  const changed = [...present].filter(([address, chain]) => wanted.get(address) !== chain);
  const added = [...wanted].filter(([address, chain]) => present.get(address) !== chain);
  if (changed.length > 0)
    commands.push(
      elementCommand(
        'delete',
        map,
        changed.map(([address]) => address),
      ),
    );
  if (added.length > 0) {
    commands.push(
      elementCommand(
        'add',
        map,
        added.map(([address, chain]) => subjectElement(address, chain)),
      ),
    );
  }
  return commands;
}
