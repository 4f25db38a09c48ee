/**
 * JSON with the error texts of Go's encoding/json, which reach clients inside 400 answers. The value itself comes
 * from the native parser; a linear scan beside it finds what that parser hides (repeated keys, the spelling of
 * numbers). Only a text that has such things, or an error, is read again by the slow parser.
 */
import { isRecord } from '../../../objects/json.ts';
import type { ParsedJson } from './go-json.ts';
import { parseJsonSlowly } from './parse-json-slowly.ts';

/** Nesting from which the slow parser is used, which checks the limit. */
const fastDepth = 200;

/**
 * Parses UTF-8 text; invalid bytes count as U+FFFD. @throws {JsonSyntaxError} with the message of Go's
 * encoding/json, `exceeded max depth` beyond 1,000 levels included.
 */
export function parseJson(bytes: Buffer): ParsedJson {
  const text = bytes.toString('utf8');
  const members = countMembers(bytes);
  if (members >= 0) {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return parseJsonSlowly(text);
    }
    if (countKeys(value) === members) return { value, repeated: undefined, hasRawNumbers: false };
  }
  return parseJsonSlowly(text);
}

/**
 * The number of `key: value` pairs of a JSON text, or -1 if it needs the slow parser: numbers that JavaScript would
 * spell otherwise, escaped surrogates, deep nesting. The text may be invalid.
 */
function countMembers(bytes: Buffer): number {
  const end = bytes.length;
  let members = 0;
  let depth = 0;
  let digits = 0;
  for (let i = 0; i < end; i++) {
    const c = bytes[i] ?? 0;
    if (c >= 0x30 && c <= 0x39) {
      if (++digits > 15) return -1;
      continue;
    }
    if (c === 0x22) {
      for (i++; i < end; i++) {
        const inside = bytes[i];
        if (inside === 0x22) break;
        // \uD800 to \uDFFF: Go replaces a surrogate without its other half.
        if (inside === 0x5c && bytes[++i] === 0x75 && ((bytes[i + 1] ?? 0) | 0x20) === 0x64) return -1;
      }
    } else if (c === 0x3a) {
      members++;
    } else if (c === 0x7b || c === 0x5b) {
      if (++depth > fastDepth) return -1;
    } else if (c === 0x7d || c === 0x5d) {
      depth--;
    } else if (c === 0x2e || c === 0x2b || c === 0x45 || (c === 0x65 && digits > 0)) {
      return -1;
    } else if (c === 0x2d && bytes[i + 1] === 0x30) {
      return -1;
    }
    digits = 0;
  }
  return members;
}

/** The members of a parsed value and of all below it. */
function countKeys(value: unknown): number {
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === 'object') count += countKeys(item);
  } else if (isRecord(value)) {
    // for-in needs no list of keys; what JSON.parse makes inherits nothing that is enumerable.
    for (const key in value) {
      count++;
      const member = value[key];
      if (typeof member === 'object') count += countKeys(member);
    }
  }
  return count;
}
