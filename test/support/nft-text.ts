/** The JSON of nft (`libnftables-json(5)`) in nft's own language, as far as this project uses it. */
import type { Command, NftExpression } from '../../src/node/nftables/elements.ts';
import { at, isRecord, listAt, numberAt, textAt } from '../../src/objects/json.ts';

/** The type of an expression by nft's name, one for each part of a concatenation. @throws {Error} for one that is unknown here. */
export function typesOf(expression: unknown): readonly string[] {
  const parts = listAt(expression, 'concat');
  if (parts.length > 0) return parts.flatMap(typesOf);
  for (const operator of ['&', '|']) {
    const [operand] = listAt(expression, operator);
    if (operand !== undefined) return typesOf(operand);
  }
  const found =
    types[`${textAt(expression, 'payload', 'protocol')} ${textAt(expression, 'payload', 'field')}`] ??
    types[`meta ${textAt(expression, 'meta', 'key')}`] ??
    types[`ct ${textAt(expression, 'ct', 'key')}`] ??
    types[`fib ${textAt(expression, 'fib', 'result')}`];
  if (found === undefined) throw unknownHere(expression);
  return [found];
}

const types: Readonly<Record<string, string>> = {
  'ip saddr': 'ipv4_addr',
  'ip daddr': 'ipv4_addr',
  'ip6 saddr': 'ipv6_addr',
  'ip6 daddr': 'ipv6_addr',
  'th sport': 'inet_service',
  'th dport': 'inet_service',
  'icmpv6 type': 'icmpv6_type',
  'meta l4proto': 'inet_proto',
  'meta mark': 'mark',
  'meta iifname': 'ifname',
  'meta nfproto': 'nf_proto',
  'ct mark': 'mark',
  'ct state': 'ct_state',
  'ct status': 'ct_status',
  'ct direction': 'ct_dir',
  'fib type': 'fib_addrtype',
};

/** A field of a packet, or what is computed of it. */
function expressionText(expression: unknown): string {
  const parts = listAt(expression, 'concat');
  if (parts.length > 0) return parts.map(expressionText).join(' . ');
  const [masked, bits] = listAt(expression, '|');
  const [field, mask] = listAt(masked ?? expression, '&');
  // The kernel has one operation for both, (field & mask) ^ bits: nft shows a mask with these bits.
  const shownMask = Number(mask) + (Number(bits ?? 0) & ~Number(mask));
  const maskText = field === undefined ? '' : ` & ${hexadecimal(shownMask)}`;
  const bitsText = bits === undefined ? '' : ` | ${constantText('mark', bits)}`;
  const operand = field ?? masked;
  if (operand !== undefined) return `${expressionText(operand)}${maskText}${bitsText}`;
  const inner = isRecord(expression) ? Object.entries(expression)[0] : undefined;
  const [kind, value] = inner ?? ['', undefined];
  switch (kind) {
    case 'payload':
      return `${textAt(value, 'protocol')} ${textAt(value, 'field')}`;
    case 'meta':
      return textAt(value, 'key') === 'iifname' ? 'iifname' : `meta ${textAt(value, 'key')}`;
    case 'ct':
      return `ct ${textAt(value, 'key')}`;
    case 'fib':
      return `fib ${textAt(value, 'flags')} ${textAt(value, 'result')}`;
    case 'numgen':
      return `numgen ${textAt(value, 'mode')} mod ${numberAt(value, 'mod')}`;
    case 'jhash':
      return `jhash ${expressionText(at(value, 'expr'))} mod ${numberAt(value, 'mod')} seed 0x${numberAt(value, 'seed').toString(16)}`;
    case 'map':
      return `${expressionText(at(value, 'key'))} map ${textAt(value, 'data')}`;
    default:
      throw unknownHere(expression);
  }
}

/** What a field is compared with, or set to. */
function constantText(type: string, value: unknown): string {
  const members = listAt(value, 'set');
  if (members.length > 0) return `{ ${members.map((each) => constantText(type, each)).join(', ')} }`;
  if (Array.isArray(value)) return value.map((each) => constantText(type, each)).join(',');
  const address = textAt(value, 'prefix', 'addr');
  if (address !== '') return `${address}/${numberAt(value, 'prefix', 'len')}`;
  if (typeof value === 'number') return type === 'mark' ? hexadecimal(value) : String(value);
  if (typeof value !== 'string') return expressionText(value);
  return type === 'ifname' ? `"${value}"` : value;
}

/** A mark as nft prints it. */
export function hexadecimal(value: number): string {
  return `0x${value.toString(16).padStart(8, '0')}`;
}

/** `goto x`, `drop`. */
export function verdictText(verdict: unknown): string {
  for (const word of ['goto', 'jump']) {
    const target = textAt(verdict, word, 'target');
    if (target !== '') return `${word} ${target}`;
  }
  const [word = ''] = isRecord(verdict) ? Object.keys(verdict) : [];
  if (!['drop', 'accept', 'return'].includes(word)) throw unknownHere(verdict);
  return word;
}

/** The statements of a rule. */
export function ruleText(statements: readonly unknown[]): string {
  const texts = statements.map(statementText);
  // nft leaves out what follows from the next statement.
  return texts.filter((text, i) => text !== 'meta l4proto tcp' || texts[i + 1] !== tcpReset).join(' ');
}

const tcpReset = 'reject with tcp reset';

function statementText(statement: unknown): string {
  const inner = isRecord(statement) ? Object.entries(statement)[0] : undefined;
  const [kind, value] = inner ?? ['', undefined];
  switch (kind) {
    case 'match': {
      const left = at(value, 'left');
      const operator = textAt(value, 'op') === '!=' ? ' !=' : '';
      return `${expressionText(left)}${operator} ${constantText(typesOf(left)[0] ?? '', at(value, 'right'))}`;
    }
    case 'mangle': {
      const key = at(value, 'key');
      return `${expressionText(key)} set ${constantText(typesOf(key)[0] ?? '', at(value, 'value'))}`;
    }
    case 'vmap': {
      const data = at(value, 'data');
      const verdicts = listAt(data, 'set').map((pair) => {
        const entry: readonly unknown[] = Array.isArray(pair) ? pair : [];
        const [key, verdict] = entry;
        return `${String(key)} : ${verdictText(verdict)}`;
      });
      const target = typeof data === 'string' ? data : `{ ${verdicts.join(', ')} }`;
      return `${expressionText(at(value, 'key'))} vmap ${target}`;
    }
    case 'set': {
      const key = expressionText(at(value, 'elem', 'elem', 'val'));
      const timeout = durationText(numberAt(value, 'elem', 'elem', 'timeout'));
      return `${textAt(value, 'op')} ${textAt(value, 'set')} { ${key} timeout ${timeout} }`;
    }
    case 'reject': {
      if (textAt(value, 'type') === 'tcp reset') return tcpReset;
      if (textAt(value, 'expr') !== 'port-unreachable') throw unknownHere(statement);
      return 'reject';
    }
    case 'masquerade':
      return `masquerade ${textAt(value, 'flags')}`;
    case 'dnat':
    case 'snat':
      return `${kind} ${textAt(value, 'family')} to ${expressionText(at(value, 'addr'))}`;
    default:
      return verdictText(statement);
  }
}

function durationText(seconds: number): string {
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ] as const;
  return parts.map(([count, unit]) => (count === 0 ? '' : `${count}${unit}`)).join('');
}

/** The line `type …;` of a chain with a hook; undefined for others. */
export function hookText(chain: unknown): string | undefined {
  const hook = textAt(chain, 'hook');
  if (hook === '') return undefined;
  const priority = priorityText(numberAt(chain, 'prio'), hook);
  return `type ${textAt(chain, 'type')} hook ${hook} priority ${priority}; policy ${textAt(chain, 'policy')};`;
}

/** Names of priorities that are ten away at most (`std_prios` in nft's `rule.c`). */
function priorityText(priority: number, hook: string): string {
  const names: readonly (readonly [string, number])[] = [
    ['raw', -300],
    ['mangle', -150],
    ...(hook === 'prerouting' ? ([['dstnat', -100]] as const) : []),
    ['filter', 0],
    ['security', 50],
    ...(hook === 'postrouting' ? ([['srcnat', 100]] as const) : []),
  ];
  const near = names.find(([, value]) => Math.abs(priority - value) <= 10);
  if (near === undefined) return String(priority);
  const distance = priority - near[1];
  if (distance === 0) return near[0];
  return `${near[0]} ${distance > 0 ? '+' : '-'} ${Math.abs(distance)}`;
}

/** The lines `type …`, `size …` and `flags …` of a set or map. */
export function definitionTexts(set: unknown): readonly string[] {
  const value = textAt(set, 'map');
  const size = numberAt(set, 'size');
  const flags = listAt(set, 'flags').map(String);
  return [
    `type ${setTypes(set).join(' . ')}${value === '' ? '' : ` : ${value}`}`,
    ...(size === 0 ? [] : [`size ${size}`]),
    ...(flags.length === 0 ? [] : [`flags ${flags.join(',')}`]),
  ];
}

/** The types of the parts of a set's keys. */
export function setTypes(set: unknown): readonly string[] {
  const type = at(set, 'type');
  return Array.isArray(type) ? type.map(String) : [String(type)];
}

/** A command on one line. @param elements those of its set or map, as text. */
export function commandText(command: Command, elements: readonly string[]): string {
  const [verb = '', object] = Object.entries(command)[0] ?? [];
  const [kind = '', value] = (isRecord(object) ? Object.entries(object)[0] : undefined) ?? [];
  const family = textAt(value, 'family');
  const name = textAt(value, 'name');
  const place = kind === 'table' ? `${family} ${name}` : `${family} ${textAt(value, 'table')}`;
  const list = elements.length === 0 ? [] : [`{ ${elements.join(', ')} }`];
  switch (`${verb} ${kind}`) {
    case 'add rule':
      return `add rule ${place} ${textAt(value, 'chain')} ${ruleText(listAt(value, 'expr'))}`;
    case 'add chain': {
      const hook = hookText(value);
      return `add chain ${place} ${name}${hook === undefined ? '' : ` { ${hook} }`}`;
    }
    case 'add set':
    case 'add map': {
      const parts = [...definitionTexts(value), ...list.map((text) => `elements = ${text}`)];
      return `add ${kind} ${place} ${name} { ${parts.map((part) => `${part};`).join(' ')} }`;
    }
    case 'add element':
    case 'delete element':
      return `${verb} element ${place} ${name} ${list.join('')}`;
    default:
      return kind === 'table' ? `${verb} table ${place}` : `${verb} ${kind} ${place} ${name}`;
  }
}

/**
 * Commands of nft's own language as JSON: tables, sets, maps and elements, and what takes away.
 *
 * @throws {Error} for others.
 */
export function parseCommands(text: string): readonly Command[] {
  const lines = text.split(/\n|;(?![^{]*\})/).map((line) => line.trim());
  return lines.filter((line) => line !== '').map(parseCommand);
}

function parseCommand(line: string): Command {
  if (line === 'flush ruleset') return { flush: { ruleset: null } };
  const [, verb = '', kind = '', family = '', table = '', name = '', braces = ''] =
    /^(add|delete|flush) (table|chain|set|map|element) (\w+) (\S+) ?([^\s{]*) ?(?:\{(.*)\})?$/.exec(line) ??
    [];
  const place = { family, table, name };
  switch (kind) {
    case 'table':
      return { [verb]: { table: { family, name: table } } };
    case 'element':
      return {
        [verb]: { element: { ...place, elem: braces.split(',').map((each) => parseElement(each.trim())) } },
      };
    case 'set':
    case 'map': {
      const [, key = '', value] = /type ([^:;]*)(?: : ([^;]*))?;/.exec(braces) ?? [];
      const isInterval = braces.includes('flags interval');
      const parts = key.trim().split(' . ');
      const type = parts.length === 1 ? key.trim() : parts;
      const common = { ...place, type, ...(isInterval ? { flags: ['interval'] } : {}) };
      const body =
        braces === '' ? place : { ...common, ...(value === undefined ? {} : { map: value.trim() }) };
      return { [verb]: { [kind]: body } };
    }
    case 'chain':
      return { [verb]: { chain: place } };
    default:
      throw new Error(`not a command that is known here: ${line}`);
  }
}

function parseElement(text: string): NftExpression {
  const [key = '', value] = text.split(' : ');
  if (value === undefined) return parseParts(key);
  const [word = '', target = ''] = value.split(' ');
  if (word === 'goto' || word === 'jump') return [parseParts(key), { [word]: { target } }];
  return [parseParts(key), word === 'drop' ? { drop: null } : parseParts(value)];
}

function parseParts(text: string): NftExpression {
  const parts = text.split(' . ').map((part): NftExpression => {
    if (/^(0x[0-9a-f]+|\d+)$/.test(part)) return Number(part);
    const [addr = '', len] = part.split('/');
    return len === undefined ? part : { prefix: { addr, len: Number(len) } };
  });
  return parts.length === 1 ? (parts[0] ?? null) : { concat: parts };
}

function unknownHere(json: unknown): Error {
  return new Error(`the fake nft does not know ${JSON.stringify(json)}`);
}
