import { type Element, keyText, valueText } from './elements.ts';

/** What one element needs. Maps have no replacing: that is a deletion and an addition in one transaction. */
export interface ElementChange {
  readonly kind: 'add' | 'replace' | 'delete';
  /** As it is to be, or as it was where it goes. */
  readonly element: Element;
}

/**
 * What leads from one state to the other.
 *
 * @param after no element twice.
 */
export function difference(before: Iterable<Element>, after: Iterable<Element>): readonly ElementChange[] {
  const left = new Map<string, Element>();
  for (const element of before) left.set(elementText(element), element);
  const changes: ElementChange[] = [];
  const isNew = left.size === 0;
  for (const element of after) {
    const text = isNew ? '' : elementText(element);
    const former = left.get(text);
    left.delete(text);
    if (former === undefined) changes.push({ kind: 'add', element });
    else if (valueText(former.value) !== valueText(element.value)) changes.push({ kind: 'replace', element });
  }
  for (const element of left.values()) changes.push({ kind: 'delete', element });
  return changes;
}

/** What tells an element from all others of the table. */
export function elementText({ set, key }: Element): string {
  return `${set} ${keyText(key)}`;
}
