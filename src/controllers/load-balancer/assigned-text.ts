import { parseStrictAddress } from '../../objects/address.ts';
import type { ShrinkPolicy } from './pool.ts';

/** A pool that gave an address, and what it wants when it no longer contains it. */
export interface Origin {
  readonly pool: string;
  readonly shrinkPolicy: ShrinkPolicy;
}

/** What the condition of a Service says of one of its addresses. */
export interface AssignedText {
  readonly address: string;
  /** Undefined for an address that no pool of ours ever gave. */
  readonly origin: Origin | undefined;
  /** As {@link keyText} writes it. */
  readonly key: string;
  /** True when no pool contains the address any more. */
  readonly kept: boolean;
}

const keptText =
  ' (kept, though no pool contains it any more: extend a pool to contain it, or ask for another address with servicenet.dev/addresses)';

/**
 * The sentence about one address. People read it, and so does the next process ({@link readAssigned}): the status is
 * the only record of which pool gave an address and by which key it is shared.
 */
export function assignedText({ address, origin, key, kept }: AssignedText): string {
  const from = origin === undefined ? '' : ` from pool ${origin.pool}`;
  const policy = origin?.shrinkPolicy === 'Reassign' ? ' (shrinkPolicy Reassign)' : '';
  return `${address}${from}${policy}${key === '' ? '' : ` with sharing key ${key}`}${kept ? keptText : ''}`;
}

/** A sharing key as it stands in a condition: quoted, and cut where it is longer than anybody reads. */
export function keyText(sharingKey: string): string {
  return sharingKey === '' ? '' : JSON.stringify(sharingKey.slice(0, 64));
}

/** The inverse of {@link keyText}, but for keys that it cut. A text that it never wrote is nobody's key. */
export function readKey(text: string): string {
  if (text === '') return '';
  try {
    return String(JSON.parse(text));
  } catch {
    return text;
  }
}

/** Reads the sentences about addresses at the start of a condition's message; what comes after them is not ours. */
export function readAssigned(message: string): AssignedText[] {
  const texts: AssignedText[] = [];
  const sentence =
    /(?<address>[0-9a-f.:]+)(?: from pool (?<pool>[-a-z0-9.]+))?(?<reassign> \(shrinkPolicy Reassign\))?(?: with sharing key (?<key>"(?:[^"\\]|\\.)*"))?(?<kept> \(kept, [^)]*\))?(?:(?<more>, )|; |$)/y;
  for (let match = sentence.exec(message); match?.groups !== undefined; match = sentence.exec(message)) {
    const { address = '', pool, reassign, key = '', kept, more } = match.groups;
    if (parseStrictAddress(address)?.canonical !== address || (pool ?? kept) === undefined) break;
    const shrinkPolicy = reassign === undefined ? 'Retain' : 'Reassign';
    const origin = pool === undefined ? undefined : ({ pool, shrinkPolicy } as const);
    texts.push({ address, origin, key, kept: kept !== undefined });
    if (more === undefined) break;
  }
  return texts;
}
