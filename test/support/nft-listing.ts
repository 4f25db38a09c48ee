/** What `nft list ruleset` prints, in an order of its own: nft lists in the order in which things were made. */

/** By the head of a table (`table ip servicenet`), by the head of a set, map or chain in it: the lines between its braces. */
export type Listing = ReadonlyMap<string, ReadonlyMap<string, readonly string[]>>;

/** Tables, then sets and maps, then chains, each in order of name; the elements of a set sorted, one a line. */
export function printListing(listing: Listing): string {
  const lines: string[] = [];
  for (const [table, blocks] of [...listing].sort(([a], [b]) => compare(a, b))) {
    lines.push(`${table} {`);
    const sorted = [...blocks].sort(([a], [b]) => compare(sortKey(a), sortKey(b)));
    sorted.forEach(([head, inner], index) => {
      if (index > 0) lines.push('');
      lines.push(`\t${head} {`, ...inner.map((line) => `\t\t${line}`), '\t}');
    });
    lines.push('}');
  }
  return lines.map((line) => `${line}\n`).join('');
}

/** The line for the elements of a set or map. */
export function elementLines(elements: readonly string[]): readonly string[] {
  if (elements.length === 0) return [];
  return `elements = { ${elements.toSorted(compare).join(',\n\t     ')} }`.split('\n');
}

/** Reads what nft has printed. */
export function parseListing(text: string): Listing {
  const listing = new Map<string, Map<string, readonly string[]>>();
  for (const [, table = '', body = ''] of text.matchAll(/^(table .*) \{\n((?:[\t\n].*\n|\n)*)\}/gm)) {
    const blocks = new Map<string, readonly string[]>();
    for (const [, head = '', inner = ''] of body.matchAll(
      /^\t((?:map|set|chain) .*) \{\n((?:\t\t.*\n)*)\t\}/gm,
    )) {
      const [lines = '', elements] = inner.split(/^\t\telements = \{ /m);
      const listed = elements?.replace(/ \}\n$/, '').split(/,\s+/) ?? [];
      blocks.set(head, [
        ...lines.split('\n').flatMap((line) => (line === '' ? [] : [line.slice(2)])),
        ...elementLines(listed),
      ]);
    }
    listing.set(table, blocks);
  }
  return listing;
}

/** What a listing has that another has not, or has otherwise. */
export function listingWithout(listing: Listing, other: Listing): Listing {
  return new Map(
    [...listing].map(([table, blocks]) => [
      table,
      new Map(
        [...blocks].filter(([head, lines]) => other.get(table)?.get(head)?.join('\n') !== lines.join('\n')),
      ),
    ]),
  );
}

function sortKey(head: string): string {
  const [kind = '', name = ''] = head.split(' ');
  return `${kind === 'chain' ? 'chain' : ''} ${name}`;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
