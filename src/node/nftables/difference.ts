import { type Element, keyText, valueText } from './elements.ts';

/** What one element needs. Maps have no replacing: that is a deletion and an addition in one transaction. */
export interface ElementChange {
  readonly kind: 'add' | 'replace' | 'delete';
  /** As it is to be, or as it was where it goes. */
  readonly element: Element;
}

/** What leads from one state to the other. An element that appears more than once in a state counts once. */
export function difference(before: Iterable<Element>, after: Iterable<Element>): readonly ElementChange[] {
  const old = new Map<string, Element>();
  for (const element of before) old.set(elementText(element), element);
  const seen = new Set<string>();
  const changes: ElementChange[] = [];
  for (const element of after) {
    const text = elementText(element);
    if (seen.has(text)) continue;
    seen.add(text);
    const former = old.get(text);
    if (former === undefined) changes.push({ kind: 'add', element });
    else if (valueText(former.value) !== valueText(element.value)) changes.push({ kind: 'replace', element });
  }
  for (const [text, element] of old) if (!seen.has(text)) changes.push({ kind: 'delete', element });
  return changes;
}

/** What tells an element from all others of the table. */
export function elementText({ set, key }: Element): string {
  return `${set} ${keyText(key)}`;
}
