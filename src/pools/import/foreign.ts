/** Reads the values that the configurations of other load balancers have in common. */
import { type AddressRange, parseAddressRange } from '../../allocation/address-range.ts';
import { maxRangeSize } from '../../controllers/load-balancer/pool.ts';
import { parseCidr } from '../../objects/address.ts';
import { isRecord, isStringList, isStringMap } from '../../objects/json.ts';
import { compileLabelSelector } from '../../objects/labels/labels.ts';
import type { LabelSelector } from '../../objects/meta.ts';
import { errorMessage } from '../../objects/error-message.ts';

/** Most entries of `spec.addresses` of an AddressPool (deploy/crds). */
export const maxEntries = 256;

/**
 * CIDRs, ranges and single addresses as entries of an AddressPool. The host bits of CIDRs are cleared, as other load
 * balancers do. Entries that an AddressPool cannot have are left out, with a note.
 *
 * @param owner the name of the pool, for the notes.
 */
export function importedAddresses(owner: string, texts: readonly string[], notes: string[]): string[] {
  const taken: string[] = [];
  for (const text of texts) {
    const range = readForeignRange(text.trim());
    if (typeof range === 'string') notes.push(`${owner}: ${JSON.stringify(text)} not imported: ${range}`);
    else if (taken.length === maxEntries) {
      notes.push(`${owner}: ${range.text} not imported: a pool has at most ${maxEntries} entries`);
    } else taken.push(range.text);
  }
  return taken;
}

/** The range, or why it is not imported. */
function readForeignRange(text: string): AddressRange | string {
  const range = text.includes('/')
    ? networkOf(text)
    : parseAddressRange(text.includes('-') ? text : `${text}-${text}`);
  if (range === undefined)
    return 'it is neither an address, a CIDR nor a range that ends behind its beginning';
  if (range.size === 1n && range.first === 0n) {
    return 'it asks DHCP for addresses, which has no counterpart';
  }
  if (range.size > maxRangeSize[range.family]) {
    return `a pool's ${range.family} range is at most a /${range.family === 'IPv4' ? 8 : 64}`;
  }
  return range;
}

/** A CIDR with its host bits cleared. */
function networkOf(text: string): AddressRange | undefined {
  const cidr = parseCidr(text);
  if (cidr === undefined || cidr.leadingZeros || cidr.ipv4Mapped) return undefined;
  return parseAddressRange(cidr.canonical);
}

/** The objects in a list; other values are left out. */
export function objectsAt(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter((item) => isRecord(item)) : [];
}

/** True for a meta/v1 LabelSelector. */
function isLabelSelector(value: unknown): value is LabelSelector {
  if (!isRecord(value)) return false;
  const { matchLabels, matchExpressions } = value;
  if (matchLabels !== undefined && !isStringMap(matchLabels)) return false;
  if (matchExpressions === undefined) return true;
  return (
    Array.isArray(matchExpressions) &&
    matchExpressions.every(
      (item) =>
        isRecord(item) &&
        typeof item['key'] === 'string' &&
        typeof item['operator'] === 'string' &&
        (item['values'] === undefined || isStringList(item['values'])),
    )
  );
}

/** The LabelSelectors in a list, see {@link readSelector}. */
export function selectorsAt(value: unknown): LabelSelector[] {
  return Array.isArray(value) ? value.map((item: unknown) => readSelector(item)) : [];
}

/** The LabelSelector; an invalid one if the value is none, so that its pool is not imported. */
export function readSelector(value: unknown): LabelSelector {
  if (!isLabelSelector(value))
    return { matchExpressions: [{ key: '', operator: 'a selector that cannot be read' }] };
  const { matchLabels, matchExpressions } = value;
  return {
    ...(matchLabels === undefined ? {} : { matchLabels }),
    ...(matchExpressions === undefined
      ? {}
      : {
          matchExpressions: matchExpressions.map(({ key, operator, values }) => ({
            key,
            operator,
            ...(values === undefined ? {} : { values }),
          })),
        }),
  };
}

/** Why the API would refuse a selector; undefined: it would not. */
export function selectorProblem(selector: LabelSelector): string | undefined {
  try {
    compileLabelSelector(selector);
    return undefined;
  } catch (error) {
    return errorMessage(error);
  }
}

/** Adds a note about the fields of an object that are not imported. */
export function noteOthers(
  name: string,
  object: Readonly<Record<string, unknown>>,
  known: readonly string[],
  notes: string[],
): void {
  const others = Object.keys(object).filter((field) => !known.includes(field));
  if (others.length > 0) notes.push(`${name}: ${others.join(', ')} not imported`);
}
