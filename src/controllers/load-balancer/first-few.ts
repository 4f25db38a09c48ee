/** How many of a list a sentence names, and how long each may be: conditions hold 32 KiB, and people read less. */
const most = 5;
const longest = 300;

/** The first few of a list and the number of the others: `a, b, c, d, e, and 3 more`. */
export function firstFew(list: readonly string[], separator = ', '): string {
  const named = list
    .slice(0, most)
    .map((text) => (text.length > longest ? `${text.slice(0, longest)}…` : text));
  const more = list.length - named.length;
  return [...named, ...(more > 0 ? [`and ${more} more`] : [])].join(separator);
}
