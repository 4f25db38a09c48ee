/** The table `inet servicenet-egress`: by which node a Pod's connections leave, their source address there, and DSCP values. */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { IPFamily } from '../../objects/address.ts';
import { jsonEqual } from '../../objects/json.ts';
import { pushAll } from '../../objects/lists.ts';
import type { EgressPlan } from '../../network/egress/egress-plan.ts';
import type { QoSMark } from '../../network/egress/egress-plan.ts';
import {
  assign,
  type Command,
  concat,
  field,
  goto,
  match,
  type NftExpression,
  type NftFamily,
  verdictOf,
} from '../nftables/elements.ts';
import { egressMark, egressMask } from '../nftables/marks.ts';
import type { Nft } from '../nftables/nft.ts';
import { disjointRanges } from '../nftables/elements.ts';
import { splitTransactions } from '../nftables/transactions.ts';

/** Ours alone. */
export const egressTable = { family: 'inet', name: 'servicenet-egress' } as const;
const table = egressTable;

const inTable = { family: table.family, table: table.name };

interface FamilyNames {
  readonly family: IPFamily;
  readonly nft: NftFamily;
  readonly suffix: '4' | '6';
  readonly type: string;
}

const families: readonly FamilyNames[] = [
  { family: 'IPv4', nft: 'ip', suffix: '4', type: 'ipv4_addr' },
  { family: 'IPv6', nft: 'ip6', suffix: '6', type: 'ipv6_addr' },
];

/** The changing contents of the kernel, by the name of a set or map: its elements, with the values of a map. */
interface KnownContents {
  readonly chains: ReadonlyMap<string, readonly (readonly NftExpression[])[]>;
  readonly elements: ReadonlyMap<string, ReadonlyMap<string, NftExpression | undefined>>;
}

/** Elements of one command: a transaction holds some of them. */
const elementsPerCommand = 500;

/** Writes plans of egress into the kernel of a node. One call at a time. */
export class EgressTable {
  readonly #nft: Nft;
  readonly #markMask: number;
  /** Undefined: that is not known, and the table is made anew. */
  #known: KnownContents | 'none' | undefined;

  /** @param markMask the bits of the packet mark that the agent may use. */
  constructor(nft: Nft, markMask: number) {
    this.#nft = nft;
    this.#markMask = markMask;
  }

  /** The next sync makes the table anew. */
  invalidate(): void {
    this.#known = undefined;
  }

  /**
   * Programs the kernel by the plan.
   *
   * @param numbers of the other nodes that the plan leaves by: their routing tables.
   * @throws {NftError} The next sync then makes the table anew.
   * @throws {RangeError} if the mark has too few bits for the numbers.
   */
  async sync(plan: EgressPlan, numbers: ReadonlyMap<string, number>): Promise<void> {
    if (isEmpty(plan)) {
      const isKnown = this.#known !== undefined;
      if (this.#known === 'none') return;
      if (isKnown || (await this.#nft.list([], 'table', table.family, table.name)) !== undefined) {
        await this.cleanUp();
      }
      this.#known = 'none';
      return;
    }
    const present = this.#known === 'none' ? undefined : this.#known;
    this.#known = undefined;
    const wanted = this.#contentsOf(plan, numbers);
    const commands =
      present === undefined ? [...this.#baseCommands(), ...changes(empty, wanted)] : changes(present, wanted);
    if (commands.length > 0) await this.#nft.runAll(Readable.from(splitTransactions(commands)));
    this.#known = wanted;
  }

  /** Ends the program that {@link sync} leaves behind for the next change. What was written stays. */
  async close(): Promise<void> {
    await this.#nft.close();
  }

  /** Takes the table away. @throws {NftError} */
  async cleanUp(): Promise<void> {
    this.invalidate();
    await this.#nft.run([{ add: { table } }, { delete: { table } }]);
  }

  #baseCommands(): Command[] {
    const sets = families.flatMap(({ suffix, type }): Command[] => [
      { add: { set: { ...inTable, name: `inside-${suffix}`, type, flags: ['interval'] } } },
      { add: { map: { ...inTable, name: `leave-${suffix}`, type, map: 'verdict' } } },
      { add: { map: { ...inTable, name: `sources-${suffix}`, type, map: type } } },
      { add: { map: { ...inTable, name: `marks-${suffix}`, type, map: 'verdict' } } },
    ]);
    // Behind the translation of Services, before the routing decision.
    const prerouting = { type: 'filter', hook: 'prerouting', prio: -95, policy: 'accept' };
    // The destination is the one behind the translation of Services here too.
    const dscp = { ...prerouting, prio: -94 };
    // Before a network plugin masquerades what leaves the cluster: the first translation of a connection is its only one.
    const postrouting = { type: 'nat', hook: 'postrouting', prio: 95, policy: 'accept' };
    const isMarked = match({ '&': [field.packetMark, egressMask(this.#markMask)] }, 0, '!=');
    const inside = families.map(({ nft, suffix }) => [
      match(field.destinationAddress(nft), `@inside-${suffix}`),
      { return: null },
    ]);
    const rules: readonly (readonly [string, readonly (readonly NftExpression[])[]])[] = [
      [
        'prerouting',
        [
          // Replies return by the way of the request.
          [match({ ct: { key: 'direction' } }, 'reply'), { return: null }],
          ...inside,
          ...families.map(({ nft, suffix }) => [verdictOf(field.sourceAddress(nft), `leave-${suffix}`)]),
        ],
      ],
      ['dscp', families.map(({ nft, suffix }) => [verdictOf(field.sourceAddress(nft), `marks-${suffix}`)])],
      [
        'postrouting',
        [
          ...inside,
          // It stays the Pod's on its way to the node that it leaves by.
          ...families.map(({ nft }) => [isMarked, snat(nft, field.sourceAddress(nft))]),
          ...families.map(({ nft, suffix }) => [
            snat(nft, { map: { key: field.sourceAddress(nft), data: `@sources-${suffix}` } }),
          ]),
        ],
      ],
    ];
    return [
      // Anew, where there is one.
      ...[{ add: { table } }, { delete: { table } }, { add: { table } }],
      ...sets,
      { add: { chain: { ...inTable, name: 'prerouting', ...prerouting } } },
      { add: { chain: { ...inTable, name: 'dscp', ...dscp } } },
      { add: { chain: { ...inTable, name: 'postrouting', ...postrouting } } },
      ...rules.flatMap(([chain, all]) => all.map((expr) => addRule(chain, expr))),
    ];
  }

  #contentsOf(plan: EgressPlan, numbers: ReadonlyMap<string, number>): KnownContents {
    const chains = new Map<string, readonly (readonly NftExpression[])[]>();
    const elements = new Map<string, Map<string, NftExpression | undefined>>();
    for (const { family, nft, suffix } of families) {
      const isOf = (address: string): boolean => address.includes(':') === (family === 'IPv6');
      const ranges = disjointRanges(plan.inside.filter(isOf));
      elements.set(`inside-${suffix}`, new Map(ranges.map((range) => [range, undefined])));
      elements.set(`sources-${suffix}`, new Map([...plan.sources].filter(([address]) => isOf(address))));
      const leave = [...plan.leave].filter(([address]) => isOf(address));
      elements.set(
        `leave-${suffix}`,
        new Map(leave.map(([address, nodes]) => [address, goto(this.#chainTo(nodes, numbers, chains))])),
      );
      const marked = [...plan.marks].filter(([address]) => isOf(address));
      const chainOf = (marks: readonly QoSMark[]): NftExpression => goto(dscpChain(nft, marks, chains));
      elements.set(`marks-${suffix}`, new Map(marked.map(([address, marks]) => [address, chainOf(marks)])));
    }
    return { chains, elements };
  }

  /** The chain for Pods that leave by these nodes; it and those that it leads to are added to `chains`. */
  #chainTo(
    nodes: readonly string[],
    numbers: ReadonlyMap<string, number>,
    chains: Map<string, readonly (readonly NftExpression[])[]>,
  ): string {
    // 0: this node, by which it leaves without a mark.
    const ways = nodes.map((node) => numbers.get(node) ?? 0);
    const name = `by-${ways.join('-')}`;
    if (chains.has(name)) return name;
    const [first = 0] = ways;
    if (ways.length === 1) {
      const rest = ~egressMask(this.#markMask) >>> 0;
      const mark = { '|': [{ '&': [field.packetMark, rest] }, egressMark(this.#markMask, first)] };
      chains.set(name, [[assign(field.packetMark, mark)]]);
      return name;
    }
    const verdicts = ways.map((way, index): NftExpression => {
      const verdict: NftExpression =
        way === 0 ? { return: null } : goto(this.#chainTo([nodes[index] ?? ''], numbers, chains));
      return [index, verdict];
    });
    const choose = (key: NftExpression): NftExpression => ({
      vmap: {
        key: { jhash: { mod: ways.length, seed: 1, expr: key } },
        data: { set: verdicts },
      },
    });
    const hasPorts = match(field.protocol, { set: ['tcp', 'udp', 'sctp'] });
    chains.set(
      name,
      families.flatMap(({ nft }) => {
        const ends = [field.sourceAddress(nft), field.destinationAddress(nft)];
        const ports = [{ payload: { protocol: 'th', field: 'sport' } }, field.destinationPort];
        return [[hasPorts, choose(concat(...ends, ...ports))], [choose(concat(...ends))]];
      }),
    );
    return name;
  }
}

/** Without anything to do there is no need for a table. */
export function isEmpty({ leave, sources, marks }: EgressPlan): boolean {
  return leave.size === 0 && sources.size === 0 && marks.size === 0;
}

const empty: KnownContents = { chains: new Map(), elements: new Map() };

/** The chain that marks packets of a family; it is added to `chains`. Its name is made of what it does. */
function dscpChain(
  family: NftFamily,
  marks: readonly QoSMark[],
  chains: Map<string, readonly (readonly NftExpression[])[]>,
): string {
  const rules = marks.map(({ dscp, to }) => [
    ...(to === undefined || to.prefixLength === 0
      ? []
      : [match(field.destinationAddress(family), keyOf(to.canonical))]),
    assign({ payload: { protocol: family, field: 'dscp' } }, dscp),
    { accept: null },
  ]);
  const hash = createHash('sha256').update(JSON.stringify(rules)).digest('hex').slice(0, 16);
  const name = `dscp-${hash}`;
  chains.set(name, rules);
  return name;
}

function snat(family: NftFamily, addr: NftExpression): NftExpression {
  return { snat: { addr, family } };
}

function addRule(chain: string, expr: readonly NftExpression[]): Command {
  return { add: { rule: { ...inTable, chain, expr } } };
}

/** References to a chain are added after it, and removed before it. */
function changes(present: KnownContents, wanted: KnownContents): Command[] {
  const commands: Command[] = [];
  // A chain for one node comes before those that choose between several.
  const rank = (name: string): number => name.split('-').length;
  const made = [...wanted.chains].filter(([name, rules]) => !jsonEqual(present.chains.get(name), rules));
  for (const [name] of made) commands.push({ add: { chain: { ...inTable, name } } });
  for (const [name, rules] of made.sort(([a], [b]) => rank(a) - rank(b))) {
    commands.push({ flush: { chain: { ...inTable, name } } });
    for (const expr of rules) commands.push(addRule(name, expr));
  }
  for (const [set, elements] of wanted.elements) {
    const before = present.elements.get(set) ?? new Map<string, NftExpression | undefined>();
    const isSame = (key: string): boolean =>
      before.has(key) && elements.has(key) && jsonEqual(before.get(key), elements.get(key));
    const gone = [...before].filter(([key]) => !isSame(key));
    const added = [...elements].filter(([key]) => !isSame(key));
    const deleted = gone.map(([key]) => keyOf(key));
    pushAll(commands, elementCommands('delete', set, deleted));
    const given = added.map(([key, value]) => (value === undefined ? keyOf(key) : [keyOf(key), value]));
    pushAll(commands, elementCommands('add', set, given));
  }
  const gone = [...present.chains.keys()].filter((name) => !wanted.chains.has(name));
  for (const name of gone.sort((a, b) => rank(b) - rank(a))) {
    commands.push({ delete: { chain: { ...inTable, name } } });
  }
  return commands;
}

/** An address, or a CIDR. */
function keyOf(text: string): NftExpression {
  const [addr = '', len] = text.split('/');
  return len === undefined ? addr : { prefix: { addr, len: Number(len) } };
}

function elementCommands(verb: 'add' | 'delete', name: string, elem: readonly NftExpression[]): Command[] {
  const commands: Command[] = [];
  for (let at = 0; at < elem.length; at += elementsPerCommand) {
    const part = elem.slice(at, at + elementsPerCommand);
    commands.push({ [verb]: { element: { ...inTable, name, elem: part } } });
  }
  return commands;
}
