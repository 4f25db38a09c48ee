import type { Command } from '../../src/node/nftables/elements.ts';
import { addressBits, formatAddress, parseAddress, parseCidr } from '../../src/objects/address.ts';
import { at, isRecord, type JsonRecord, listAt, textAt } from '../../src/objects/json.ts';
import type { Span } from '../../src/objects/address.ts';
import { elementLines, type Listing } from './nft-listing.ts';
import {
  commandText,
  definitionTexts,
  hexadecimal,
  hookText,
  ruleText,
  setTypes,
  typesOf,
  verdictText,
} from './nft-text.ts';

/** A command that nft or the kernel refuses: nothing of its transaction is done. */
export class NftRefusal extends Error {
  override readonly name = 'NftRefusal';
}

/** The words of the C library for the kernel's codes. */
const codes = {
  EBUSY: 'Device or resource busy',
  EEXIST: 'File exists',
  ENOENT: 'No such file or directory',
} as const;

function refuse(code: keyof typeof codes, what: string): never {
  throw new NftRefusal(`Error: Could not process rule: ${codes[code]} (${what})`);
}

/** A part of an element. */
interface Part {
  /** As nft prints it. */
  readonly text: string;
  /** As `nft -j` prints it. */
  readonly json: unknown;
  readonly span: Span;
}

interface SetElement {
  readonly key: readonly Part[];
  /** Of maps. */
  readonly value: { readonly text: string; readonly json: unknown; readonly target: string } | undefined;
}

interface KernelSet {
  readonly kind: 'set' | 'map';
  readonly definition: JsonRecord;
  /** By the text of the key. */
  readonly elements: Map<string, SetElement>;
}

interface KernelChain {
  readonly definition: JsonRecord;
  /** Statements of each rule. */
  readonly rules: readonly (readonly unknown[])[];
}

interface Table {
  readonly family: string;
  readonly name: string;
  readonly sets: Map<string, KernelSet>;
  readonly chains: Map<string, KernelChain>;
}

/** The tables of one kernel, with its rules about what may be done to them (`net/netfilter/nf_tables_api.c`). */
export class NftRuleset {
  readonly #tables = new Map<string, Table>();

  /** Changes of the copy leave this one as it is. */
  copy(): NftRuleset {
    const copy = new NftRuleset();
    for (const [key, table] of this.#tables) {
      const sets = [...table.sets].map(([name, set]): [string, KernelSet] => [
        name,
        { ...set, elements: new Map(set.elements) },
      ]);
      copy.#tables.set(key, { ...table, sets: new Map(sets), chains: new Map(table.chains) });
    }
    return copy;
  }

  /**
   * Does one command.
   *
   * @returns it in nft's own language.
   * @throws {NftRefusal}
   * @throws {Error} for a command that is not known here.
   */
  apply(command: Command): string {
    const [verb = '', object] = Object.entries(command)[0] ?? [];
    const [kind = '', inner] = (isRecord(object) ? Object.entries(object)[0] : undefined) ?? [];
    if (verb === 'flush' && kind === 'ruleset') {
      this.#tables.clear();
      return 'flush ruleset';
    }
    if (!isRecord(inner)) throw new Error(`not a command: ${JSON.stringify(command)}`);
    const elements =
      kind === 'table' ? this.#applyToTable(verb, inner) : this.#applyInTable(`${verb} ${kind}`, inner);
    return commandText(command, elements.map(elementText));
  }

  #applyToTable(verb: string, given: JsonRecord): readonly SetElement[] {
    const family = textAt(given, 'family');
    const name = textAt(given, 'name');
    const key = `${family} ${name}`;
    const present = this.#tables.get(key);
    if (verb === 'add') {
      if (present === undefined) this.#tables.set(key, { family, name, sets: new Map(), chains: new Map() });
      return [];
    }
    if (present === undefined) refuse('ENOENT', `table ${key}`);
    if (verb === 'delete') this.#tables.delete(key);
    else
      for (const [chain, { definition }] of present.chains)
        present.chains.set(chain, { definition, rules: [] });
    return [];
  }

  /** @returns the elements that the command names. */
  #applyInTable(what: string, given: JsonRecord): readonly SetElement[] {
    const key = `${textAt(given, 'family')} ${textAt(given, 'table')}`;
    const table = this.#tables.get(key);
    if (table === undefined) refuse('ENOENT', `table ${key}`);
    const name = textAt(given, 'name');
    switch (what) {
      case 'add chain':
        addChain(table, name, given);
        return [];
      case 'flush chain':
        table.chains.set(name, { ...chainOf(table, name), rules: [] });
        return [];
      case 'delete chain':
        deleteChain(table, name);
        return [];
      case 'add rule':
        addRule(table, textAt(given, 'chain'), listAt(given, 'expr'));
        return [];
      case 'add set':
      case 'add map':
        return addSet(table, name, what === 'add set' ? 'set' : 'map', given);
      case 'delete set':
      case 'delete map':
        deleteSet(table, name);
        return [];
      case 'add element':
        return addElements(table, name, listAt(given, 'elem'));
      case 'delete element':
        return deleteElements(table, name, listAt(given, 'elem'));
      default:
        throw new Error(`the fake nft does not know "${what}"`);
    }
  }

  /** As `nft list ruleset` prints it. */
  listing(): Listing {
    return new Map(
      Array.from(this.#tables.values(), ({ family, name, sets, chains }) => [
        `table ${family} ${name}`,
        new Map([
          ...Array.from(sets, ([set, { kind, definition, elements }]): [string, readonly string[]] => [
            `${kind} ${set}`,
            [...definitionTexts(definition), ...elementLines([...elements.values()].map(elementText))],
          ]),
          ...Array.from(chains, ([chain, { definition, rules }]): [string, readonly string[]] => {
            const hook = hookText(definition);
            return [`chain ${chain}`, [...(hook === undefined ? [] : [hook]), ...rules.map(ruleText)]];
          }),
        ]),
      ]),
    );
  }

  /**
   * As `nft -j list` prints it, without handles: the ruleset, of one family or of all.
   *
   * @param isTerse without elements.
   */
  items(isTerse: boolean, family?: string): readonly JsonRecord[] {
    const tables = [...this.#tables.values()].filter(
      (each) => family === undefined || each.family === family,
    );
    return tables.flatMap((table) => this.itemsOfTable(table.family, table.name, isTerse) ?? []);
  }

  /** The part of one table; undefined: there is none. */
  itemsOfTable(family: string, name: string, isTerse = false): readonly JsonRecord[] | undefined {
    const table = this.#tables.get(`${family} ${name}`);
    if (table === undefined) return undefined;
    const items: JsonRecord[] = [{ table: { family, name } }];
    for (const set of table.sets.keys()) items.push(this.itemOfSet(family, name, set, isTerse) ?? {});
    for (const { definition } of table.chains.values()) items.push({ chain: definition });
    for (const [chain, { rules }] of table.chains) {
      for (const expr of rules) items.push({ rule: { family, table: name, chain, expr } });
    }
    return items;
  }

  /** One set or map; undefined: there is none. */
  itemOfSet(family: string, tableName: string, name: string, isTerse = false): JsonRecord | undefined {
    const set = this.#tables.get(`${family} ${tableName}`)?.sets.get(name);
    if (set === undefined) return undefined;
    const { type, ...rest } = set.definition;
    const elem = isTerse ? [] : Array.from(set.elements.values(), elementJson);
    // nft names a set before its elements.
    return { [set.kind]: { name, ...rest, type, ...(elem.length === 0 ? {} : { elem }) } };
  }
}

function chainOf({ chains }: Table, name: string): KernelChain {
  return chains.get(name) ?? refuse('ENOENT', `chain ${name}`);
}

function setOf({ sets }: Table, name: string): KernelSet {
  return sets.get(name) ?? refuse('ENOENT', `set ${name}`);
}

function addChain({ chains }: Table, name: string, definition: JsonRecord): void {
  const present = chains.get(name);
  const hook = hookText(definition);
  if (present === undefined) chains.set(name, { definition, rules: [] });
  else if (hook !== undefined && hook !== hookText(present.definition)) refuse('EEXIST', `chain ${name}`);
}

/** With its own rules, which lead nowhere then. */
function deleteChain(table: Table, name: string): void {
  chainOf(table, name);
  const others = [...table.chains].filter(([chain]) => chain !== name);
  const isTarget =
    others.some(([, { rules }]) => rules.some((rule) => references(rule).targets.includes(name))) ||
    [...table.sets.values()].some(({ elements }) =>
      [...elements.values()].some(({ value }) => value?.target === name),
    );
  if (isTarget) refuse('EBUSY', `chain ${name} is in use`);
  table.chains.delete(name);
}

function addRule(table: Table, chain: string, expr: readonly unknown[]): void {
  const { definition, rules } = chainOf(table, chain);
  const { sets, targets } = references(expr);
  for (const target of targets) chainOf(table, target);
  for (const { name, types } of sets) {
    const wanted = setTypes(setOf(table, name).definition).join(' . ');
    const found = types.join(' . ');
    if (found !== wanted)
      throw new NftRefusal(`Error: datatype mismatch, expected ${wanted}, expression has type ${found}`);
  }
  ruleText(expr);
  table.chains.set(chain, { definition, rules: [...rules, expr] });
}

function addSet(
  table: Table,
  name: string,
  kind: KernelSet['kind'],
  { elem: _, ...definition }: JsonRecord & { elem?: unknown },
): readonly SetElement[] {
  const present = table.sets.get(name);
  const texts = definitionTexts(definition).join(' ');
  if (present === undefined) table.sets.set(name, { kind, definition, elements: new Map() });
  else if (definitionTexts(present.definition).join(' ') !== texts) refuse('EEXIST', `${kind} ${name}`);
  return addElements(table, name, Array.isArray(_) ? _ : []);
}

function deleteSet(table: Table, name: string): void {
  setOf(table, name);
  const isUsed = [...table.chains.values()].some(({ rules }) =>
    rules.some((rule) => references(rule).sets.some((set) => set.name === name)),
  );
  if (isUsed) refuse('EBUSY', `set ${name} is in use`);
  table.sets.delete(name);
}

function addElements(table: Table, name: string, elem: readonly unknown[]): readonly SetElement[] {
  const set = setOf(table, name);
  const isInterval = hasFlag(set, 'interval');
  return elem.map((json) => {
    const element = readElement(set, json);
    if (element.value !== undefined && element.value.target !== '') chainOf(table, element.value.target);
    if ((element.value === undefined) !== (set.kind === 'set')) {
      throw new NftRefusal(`Error: ${name} is a ${set.kind}: ${elementText(element)}`);
    }
    const key = keyText(element);
    const present = set.elements.get(key);
    if (present !== undefined && present.value?.text !== element.value?.text)
      refuse('EEXIST', `${name} ${key}`);
    if (present === undefined && isInterval) {
      const other = [...set.elements.values()].find((each) => overlaps(each, element));
      if (other !== undefined) {
        throw new NftRefusal(`Error: interval overlaps with an existing one (${key} with ${keyText(other)})`);
      }
    }
    set.elements.set(key, element);
    return element;
  });
}

function deleteElements(table: Table, name: string, elem: readonly unknown[]): readonly SetElement[] {
  const set = setOf(table, name);
  return elem.map((json) => {
    const element = { ...readElement(set, json), value: undefined };
    if (!set.elements.delete(keyText(element))) refuse('ENOENT', `${name} ${keyText(element)}`);
    return element;
  });
}

function overlaps(a: SetElement, b: SetElement): boolean {
  return a.key.every(({ span }, index) => {
    const other = b.key[index]?.span;
    return other !== undefined && span.first <= other.last && other.first <= span.last;
  });
}

function hasFlag({ definition }: KernelSet, flag: string): boolean {
  return listAt(definition, 'flags').includes(flag);
}

/** @throws {NftRefusal} if the parts are not of the set's types. */
function readElement(set: KernelSet, json: unknown): SetElement {
  const pair: readonly unknown[] | undefined = Array.isArray(json) ? json : undefined;
  const key = readParts(
    setTypes(set.definition),
    pair === undefined ? json : pair[0],
    hasFlag(set, 'interval'),
  );
  if (pair === undefined) return { key, value: undefined };
  const valueTypes = textAt(set.definition, 'map');
  if (valueTypes === 'verdict') {
    const target = textAt(pair[1], 'goto', 'target') || textAt(pair[1], 'jump', 'target');
    return { key, value: { text: verdictText(pair[1]), json: pair[1], target } };
  }
  const value = readParts(valueTypes.split(' . '), pair[1], false);
  return { key, value: { text: partsText(value), json: partsJson(value), target: '' } };
}

function readParts(types: readonly string[], json: unknown, isInterval: boolean): readonly Part[] {
  const concatenated = listAt(json, 'concat');
  const given = concatenated.length > 0 ? concatenated : [json];
  return types.map((type, index) => {
    const part = readPart(type, given[index]);
    const isRange = part !== undefined && part.span.first !== part.span.last;
    if (part === undefined || given.length !== types.length || (isRange && !isInterval)) {
      throw new NftRefusal(`Error: ${JSON.stringify(json)} is not of type ${types.join(' . ')}`);
    }
    return part;
  });
}

/** Undefined: it is not of the type. */
function readPart(type: string, json: unknown): Part | undefined {
  if (type === 'ipv4_addr' || type === 'ipv6_addr')
    return readAddress(type === 'ipv4_addr' ? 'IPv4' : 'IPv6', json);
  const [low, high] = listAt(json, 'range').map(Number);
  if (type === 'inet_service' && low !== undefined && high !== undefined && low < high && high < 65_536) {
    return {
      text: `${low}-${high}`,
      json: { range: [low, high] },
      span: { first: BigInt(low), last: BigInt(high) },
    };
  }
  const number = type === 'inet_proto' && typeof json === 'string' ? protocols[json] : json;
  const limit = limits[type];
  if (typeof number !== 'number' || limit === undefined || number < 0 || number >= limit) return undefined;
  const span = { first: BigInt(number), last: BigInt(number) };
  if (type === 'mark') return { text: hexadecimal(number), json: number, span };
  const name = Object.entries(protocols).find(([, value]) => value === number)?.[0];
  const shown = type === 'inet_proto' ? (name ?? number) : number;
  return { text: String(shown), json: shown, span };
}

const limits: Readonly<Record<string, number>> = { inet_proto: 2 ** 8, inet_service: 2 ** 16, mark: 2 ** 32 };

/** By `/etc/protocols`. */
export const protocols: Readonly<Record<string, number>> = { icmp: 1, tcp: 6, udp: 17, sctp: 132 };

function readAddress(family: 'IPv4' | 'IPv6', json: unknown): Part | undefined {
  const prefix = textAt(json, 'prefix', 'addr');
  const range = listAt(json, 'range').map(String);
  const bits = addressBits(family);
  const length = prefix === '' ? bits : Number(at(json, 'prefix', 'len'));
  const [low, high] = (range.length === 2 ? range : [prefix === '' ? String(json) : prefix]).map(
    parseAddress,
  );
  if (low?.family !== family || (range.length === 2 && high?.family !== family)) return undefined;
  const cidr = parseCidr(`${low.canonical}/${length}`);
  const first = high === undefined ? (cidr?.network ?? low.value) : low.value;
  const last = high === undefined ? first + (1n << BigInt(bits - length)) - 1n : high.value;
  const own = formatAddress(family, first);
  const span = { first, last };
  if (first === last) return { text: own, json: own, span };
  const len = bits - (last - first + 1n).toString(2).length + 1;
  const isPrefix =
    first + (1n << BigInt(bits - len)) - 1n === last && first % (1n << BigInt(bits - len)) === 0n;
  if (isPrefix) return { text: `${own}/${len}`, json: { prefix: { addr: own, len } }, span };
  const end = formatAddress(family, last);
  return { text: `${own}-${end}`, json: { range: [own, end] }, span };
}

function partsText(parts: readonly Part[]): string {
  return parts.map(({ text }) => text).join(' . ');
}

function partsJson(parts: readonly Part[]): unknown {
  return parts.length === 1 ? parts[0]?.json : { concat: parts.map(({ json }) => json) };
}

function keyText({ key }: SetElement): string {
  return partsText(key);
}

function elementText(element: SetElement): string {
  const key = keyText(element);
  return element.value === undefined ? key : `${key} : ${element.value.text}`;
}

function elementJson({ key, value }: SetElement): unknown {
  return value === undefined ? partsJson(key) : [partsJson(key), value.json];
}

interface References {
  /** Sets and maps, and the types of what is looked up in them. */
  readonly sets: readonly { readonly name: string; readonly types: readonly string[] }[];
  /** Chains. */
  readonly targets: readonly string[];
}

/** What a part of a rule refers to. */
function references(part: unknown): References {
  if (Array.isArray(part)) return united(part.map(references));
  if (!isRecord(part)) return { sets: [], targets: [] };
  const { target, key, data, left, right, set, elem } = part;
  const lookups: readonly (readonly [unknown, unknown])[] = [
    [data, key],
    [right, left],
    [set, at(elem, 'elem', 'val')],
  ];
  const sets = lookups.flatMap(([named, expression]) =>
    typeof named === 'string' && named.startsWith('@')
      ? [{ name: named.slice(1), types: typesOf(expression) }]
      : [],
  );
  const targets = typeof target === 'string' ? [target] : [];
  return united([{ sets, targets }, ...Object.values(part).map(references)]);
}

function united(all: readonly References[]): References {
  return { sets: all.flatMap(({ sets }) => sets), targets: all.flatMap(({ targets }) => targets) };
}
