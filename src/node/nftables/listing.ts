import { parseAddress } from '../../objects/address.ts';
import type { Element, ElementValue, KeyPart } from './elements.ts';
import type { SetName } from './sets.ts';

/** Elements that are read before other work gets a turn: a few milliseconds. */
const elementsPerTurn = 2_000;

/**
 * Calls `each` for the elements in what `nft -j list set` or `list map` printed. One after the other, with pauses: parsed as a whole, the
 * listing of 10,000 Services would take 150 ms and 100 MiB.
 *
 * @throws {Error} for elements of a kind that we never write.
 */
export async function readElements(
  set: SetName,
  listing: string,
  each: (element: Element) => void,
): Promise<void> {
  let count = 0;
  for (const text of elementTexts(listing)) {
    each(toElement(set, JSON.parse(text)));
    if (++count % elementsPerTurn === 0) await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

/** The texts of the members of the array `elem`. */
function* elementTexts(listing: string): Generator<string> {
  const marker = '"elem": [';
  const found = listing.indexOf(marker);
  if (found === -1) return;
  const from = found + marker.length;
  let start = from;
  let depth = 0;
  let inText = false;
  for (let i = from; i < listing.length; i++) {
    const code = listing.charCodeAt(i);
    if (code === quote) inText = !inText; // Addresses and names of chains have no quotes in them.
    if (inText) continue;
    if (code === openBrace || code === openBracket) depth++;
    else if (code === closeBrace || code === closeBracket) depth--;
    if ((code === comma && depth === 0) || depth < 0) {
      if (i > start) yield listing.slice(start, i);
      start = i + 1;
    }
    if (depth < 0) return;
  }
}

const quote = 0x22;
const comma = 0x2c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** An element as nft writes it: a key, or `[key, value]`. */
function toElement(set: SetName, json: unknown): Element {
  const pair: unknown[] | undefined = Array.isArray(json) ? json : undefined;
  if (pair === undefined) return { set, key: toKey(json) };
  return { set, key: toKey(pair[0]), value: toValue(pair[1]) };
}

function toKey(json: unknown): readonly KeyPart[] {
  const parts: unknown = member(json, 'concat');
  return Array.isArray(parts) ? parts.map(toPart) : [toPart(json)];
}

function toPart(json: unknown): KeyPart {
  if (typeof json === 'number') return json;
  if (typeof json === 'string') return canonical(json);
  const prefix = member(json, 'prefix');
  const address = member(prefix, 'addr');
  const length = member(prefix, 'len');
  if (typeof address === 'string' && typeof length === 'number') return `${canonical(address)}/${length}`;
  throw unknownElement(json);
}

/** The C library shortens IPv6 addresses in another way than RFC 5952 here and there. */
function canonical(text: string): string {
  return text.includes(':') ? (parseAddress(text)?.canonical ?? text) : text;
}

function toValue(json: unknown): ElementValue {
  if (member(json, 'drop') === null) return 'drop';
  const target = member(member(json, 'goto'), 'target');
  if (typeof target === 'string') return { goto: target };
  const [first, second] = toKey(json);
  if (typeof first === 'string' && typeof second === 'number') return [first, second];
  if (typeof first === 'number' && second === undefined) return [first];
  throw unknownElement(json);
}

function member(json: unknown, name: string): unknown {
  return typeof json === 'object' && json !== null ? Reflect.get(json, name) : undefined;
}

function unknownElement(json: unknown): Error {
  return new Error(`an element that is not ours: ${JSON.stringify(json).slice(0, 200)}`);
}
