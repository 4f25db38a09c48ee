import type { Host } from '../../../src/host/host.ts';
import { isRecord } from '../../../src/objects/json.ts';

/** Our table of one family as nft lists it. */
export interface TableListing {
  /** By the name of a set or map: its elements, `key → value` where it is a map. Sorted. */
  readonly elements: ReadonlyMap<string, readonly string[]>;
  /** By the name of a chain: its rules as JSON, in their order. */
  readonly chains: ReadonlyMap<string, readonly string[]>;
}

/** Lists a table; without what packets put into it. */
export async function listTable(host: Host, family: 'ip' | 'ip6'): Promise<TableListing> {
  const elements = new Map<string, readonly string[]>();
  const chains = new Map<string, string[]>();
  const { exitCode, stdout, stderr } = await host.exec('nft', ['-j', 'list', 'table', family, 'servicenet']);
  if (exitCode !== 0) throw new Error(stderr);
  const parsed: unknown = JSON.parse(stdout);
  const objects: unknown = isRecord(parsed) ? parsed['nftables'] : undefined;
  for (const object of Array.isArray(objects) ? objects : []) {
    if (!isRecord(object)) continue;
    const { chain, rule } = object;
    const set = object['set'] ?? object['map'];
    if (isRecord(set) && typeof set['name'] === 'string' && set['name'] !== 'affinity') {
      const listed: unknown[] = Array.isArray(set['elem']) ? set['elem'] : [];
      const texts = listed.map((element) =>
        Array.isArray(element) ? element.map(textOf).join(' → ') : textOf(element),
      );
      elements.set(set['name'], texts.sort());
    }
    if (isRecord(chain) && typeof chain['name'] === 'string') chains.set(chain['name'], []);
    if (isRecord(rule) && typeof rule['chain'] === 'string') {
      chains.get(rule['chain'])?.push(JSON.stringify(rule['expr']));
    }
  }
  return { elements, chains };
}

/** A part of an element: `10.96.0.1 tcp 80`, `pick-cluster-2`. */
function textOf(part: unknown): string {
  if (!isRecord(part)) return String(part);
  const { concat, goto, prefix } = part;
  if (Array.isArray(concat)) return concat.map(textOf).join(' ');
  if (isRecord(goto)) return String(goto['target']);
  if (isRecord(prefix)) return `${String(prefix['addr'])}/${String(prefix['len'])}`;
  return Object.keys(part).join(' ');
}

/**
 * What is wrong with a table: destinations that lead to a chain that is not there, or to one that draws a number
 * without an endpoint. Empty: each Service is there as a whole, or not at all.
 */
export function halves({ elements, chains }: TableListing): readonly string[] {
  const wrong: string[] = [];
  for (const [set, entries] of elements) {
    if (!/^(service-ips|node-ports)(-from-.*)?$/.test(set)) continue;
    for (const entry of entries) {
      const [destination = '', chain = ''] = entry.split(' → ');
      if ((chains.get(chain) ?? []).length === 0) wrong.push(`${set} ${entry}: no such chain`);
      const [, list, count = '0', affinity] = /^pick-([a-z-]+)-(\d+)[^0-9]*(\d+)?$/.exec(chain) ?? [];
      if (list === undefined) continue;
      const endpoints = keysOf(elements, `${list}-endpoints`);
      const marks = keysOf(elements, `${list}-endpoint-marks`);
      for (let slot = 0; slot < Number(count); slot++) {
        const drawn = `${destination} ${slot}`;
        const key = affinity === undefined ? drawn : `${destination} ${marks.get(drawn) ?? 'no mark'}`;
        if (!endpoints.has(key)) wrong.push(`${set} ${entry}: no endpoint ${slot}`);
      }
    }
  }
  return wrong;
}

/**
 * Those of {@link halves} that the kernel says so, too: a listing passes elements over while the kernel makes the hash table
 * of their set larger (`rhashtable_walk_next`), but a look-up finds them. What is gone by the next listing is no half.
 */
export async function confirmedHalves(host: Host, family: 'ip' | 'ip6'): Promise<readonly string[]> {
  const confirmed: string[] = [];
  for (const half of halves(await listTable(host, family))) {
    const [, destination = '', list = '', slot = ''] =
      /^\S+ (.+) → pick-([a-z-]+)-\d+\S*: no endpoint (\d+)$/.exec(half) ?? [];
    const element = `{ ${[...destination.split(' '), slot].join(' . ')} }`;
    const words = ['get', 'element', family, 'servicenet', `${list}-endpoints`, element];
    if (slot === '' || (await host.exec('nft', words)).exitCode !== 0) confirmed.push(half);
  }
  if (confirmed.length === 0) return [];
  const next = new Set(halves(await listTable(host, family)));
  return confirmed.filter((half) => next.has(half));
}

function keysOf(elements: TableListing['elements'], map: string): ReadonlyMap<string, string> {
  return new Map((elements.get(map) ?? []).map((entry) => splitEntry(entry)));
}

function splitEntry(entry: string): [string, string] {
  const [key = '', value = ''] = entry.split(' → ');
  return [key, value];
}

/** The elements without the numbers of endpoints, whose order is free. */
export function withoutSlots({ elements }: TableListing): Record<string, readonly string[]> {
  return Object.fromEntries(
    [...elements].map(([set, entries]) => {
      const isNumbered = /-endpoint(s|-marks)$/.test(set);
      return [set, isNumbered ? entries.map((entry) => entry.replace(/ \d+ →/, ' →')).sort() : entries];
    }),
  );
}
