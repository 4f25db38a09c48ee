/** What the page and the live view find. */

/** Whether each word of a search is in one of the texts, whatever its case. */
export function isFoundIn(texts: readonly string[], search: string): boolean {
  const words = search
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  if (words.length === 0) return true;
  const all = texts.join('\n').toLowerCase();
  return words.every((word) => all.includes(word));
}

/** Labels as one types them: `app=web`. */
export function labelTexts(labels: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(labels).map(([name, value]) => `${name}=${value}`);
}
